import Glibc
import StateEngine
import StateLinearizability
import StateTestSupport
import StateWire

/// Clients on threads of their own that use a few keys of one daemon, which is killed meanwhile.
///
/// What they saw is one history: a client whose connection is lost goes on with the next daemon.
struct ConcurrentRun {
    /// How much of what.
    struct Plan {
        var clientCount = 8
        /// Requests of each client.
        var requestCount = 40
        var keyCount = 4
        var killCount = 1
        /// Whether the daemon is killed once more when everybody has stopped, before the last look at the keys.
        var killsAtEnd = false
    }

    /// What the threads and who kills the daemon tell each other.
    private struct Progress {
        var requestCount = 0
        /// How many daemons have been started.
        var generation = 0
        /// When each of them was dead.
        var deaths: [Int64] = []
        var operations: [Operation] = []
        var faults: [String] = []
    }

    let plan: Plan
    let seed: UInt64
    let keys: [String]
    private let socketPath: String
    private let progress = Observed(Progress())

    /// Prepares a run on keys of its own.
    init(_ plan: Plan, seed: UInt64, keyPrefix: String, _ daemon: Daemon) {
        self.plan = plan
        self.seed = seed
        keys = (0..<plan.keyCount).map { "\(keyPrefix)/\($0)" }
        socketPath = daemon.socketPath
    }

    /// Runs it.
    ///
    /// - Returns: Everything that was asked, in no particular order.
    /// - Throws: ``SystemFailure``, where the daemon did something that no history can say.
    func run(_ daemon: Daemon) throws -> [Operation] {
        let threads = (0..<plan.clientCount).map { client in
            let thread = WorkerThread(name: "client \(client)")
            thread.start { work(client) }
            return thread
        }
        var random = SplitMix(seed: seed)
        let total = plan.clientCount * plan.requestCount
        let moments = (0..<plan.killCount).map { _ in Int.random(in: 0..<total, using: &random) }
        var killing: (any Error)?
        do {
            for moment in moments.sorted() {
                let isReached = progress.wait {
                    $0.requestCount >= moment || !$0.faults.isEmpty
                }
                guard isReached else { throw SystemFailure("no \(moment) requests in time") }
                spin(microseconds: Int64.random(in: 0...400, using: &random))
                try crash(daemon)
            }
        } catch {
            killing = error
            progress.update { $0.faults.append("\(error)") }
        }
        for thread in threads { thread.join() }
        if let killing { throw killing }
        let result = progress.current
        guard result.faults.isEmpty else {
            throw SystemFailure(result.faults.joined(separator: "\n"))
        }
        if plan.killsAtEnd { try crash(daemon) }
        return result.operations + (try lastLook())
    }

    private func crash(_ daemon: Daemon) throws {
        daemon.kill()
        progress.update { $0.deaths.append(now()) }
        try daemon.start()
        progress.update { $0.generation += 1 }
    }

    /// Reads every key when everybody has stopped.
    private func lastLook() throws -> [Operation] {
        let session = try Session(socketPath)
        return try keys.map { key in
            let invoked = now()
            let reply = try session.ask("STATE.GET", key)
            guard let outcome = Operation.Request.getEntry.outcome(of: reply) else {
                throw SystemFailure("STATE.GET was answered with \(reply)")
            }
            return Operation(
                client: plan.clientCount,
                key: key,
                .getEntry,
                outcome,
                invoked: invoked,
                ended: now()
            )
        }
    }

    // MARK: A client's thread

    private func work(_ client: Int) {
        var traffic = KeyTraffic(client: client, keys: keys, seed: seed &* 64 &+ UInt64(client))
        var operations: [Operation] = []
        var connected: (session: Session, generation: Int)?
        var first = 0
        do {
            while operations.count < plan.requestCount {
                guard let (session, generation) = try connected ?? connect(from: &first) else {
                    break
                }
                connected = (session, generation)
                let isWhole = try exchange(&traffic, session, generation, &operations)
                if !isWhole {
                    connected = nil
                    first = generation + 1
                }
            }
        } catch {
            progress.update { $0.faults.append("client \(client): \(error)") }
        }
        progress.update { $0.operations += operations }
    }

    /// Connects to the daemon of this generation or a later one; nil where the run has failed.
    private func connect(from first: inout Int) throws -> (Session, Int)? {
        while true {
            let least = first
            let generation = progress.take { progress in
                progress.faults.isEmpty
                    ? progress.generation >= least ? progress.generation : nil : -1
            }
            guard let generation else { throw SystemFailure("no daemon \(least) in time") }
            guard generation >= 0 else { return nil }
            let session = try? Session(socketPath)
            // Where that daemon has died meanwhile, the session may be with its successor.
            let isSameDaemon = progress.current.deaths.count == generation
            if let session, isSameDaemon { return (session, generation) }
            first = generation + 1
        }
    }

    /// Sends what the client wants next and notes what becomes of it.
    ///
    /// - Returns: Whether every answer came.
    private func exchange(
        _ traffic: inout KeyTraffic,
        _ session: Session,
        _ generation: Int,
        _ operations: inout [Operation]
    ) throws -> Bool {
        let requests = traffic.nextRequests()
        let invoked = now()
        var isOpen = session.send(requests.map { $0.request.command($0.key) })
        for (key, request) in requests {
            let reply = isOpen ? try session.next() : nil
            isOpen = reply != nil
            let outcome = reply.map { request.outcome(of: $0) } ?? .unknown
            guard let outcome else {
                throw SystemFailure("\(request) was answered with \(String(describing: reply))")
            }
            traffic.note(outcome, of: key)
            operations.append(
                Operation(
                    client: traffic.client,
                    key: key,
                    request,
                    outcome,
                    invoked: invoked,
                    ended: reply == nil ? try death(of: generation) : outcome.lastMoment(now())
                )
            )
        }
        progress.update { $0.requestCount += requests.count }
        return isOpen
    }

    /// When the daemon of this generation was dead: nothing that it was asked happens after that.
    private func death(of generation: Int) throws -> Int64 {
        let death = progress.take { progress in
            progress.deaths.count > generation
                ? progress.deaths[generation] : progress.faults.isEmpty ? nil : .max
        }
        guard let death else { throw SystemFailure("a living daemon ended a connection") }
        return death
    }
}

extension Operation.Outcome {
    /// When an operation whose answer came at `moment` can last have happened.
    fileprivate func lastMoment(_ moment: Int64) -> Int64 { self == .unknown ? .max : moment }
}

/// The monotonic clock in nanoseconds.
func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Passes a moment that no answer marks, so that a kill cuts a commit anywhere and not always where one has ended.
func spin(microseconds: Int64) {
    let end = now() + microseconds * 1_000
    while now() < end { sched_yield() }
}
