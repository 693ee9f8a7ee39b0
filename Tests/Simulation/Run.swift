import Glibc
import StateLinearizability
import StateTestSupport

/// One seed: clients that do what is drawn, a daemon that is killed and started again, and at last what must hold.
final class Run {
    /// What all runs share.
    struct Place {
        var program: String
        /// The library that is preloaded.
        var kernel: String
        /// For the files of the daemon; emptied by each run.
        var directory: String
        var lostWrite: UInt64
        /// Where each call is written; nil for nowhere.
        var record: String?
    }

    /// What this run does more or less often than others, drawn from its seed: what happens seldom with all
    /// things at once happens often where some are left out.
    private struct Habits {
        var clientCount: Int
        var keyCount: Int
        var lifeCount: Int
        /// How many turns of the world outside a life has at most before it is killed or stopped.
        var turnCount: Int
        /// How many commands a client sends before it waits for replies.
        var depth: Int
        var cutsPercent: Int
        var partsPercent: Int
        var stopsPercent: Int
        var weights: [Int]
        var options: [String]

        init(_ random: inout SplitMix) {
            clientCount = .random(in: 1...6, using: &random)
            keyCount = .random(in: 1...5, using: &random)
            lifeCount = .random(in: 1...4, using: &random)
            turnCount = [40, 200, 800].randomElement(using: &random) ?? 40
            depth = [1, 1, 3, 12].randomElement(using: &random) ?? 1
            cutsPercent = [0, 0, 2, 10].randomElement(using: &random) ?? 0
            partsPercent = [0, 20, 90].randomElement(using: &random) ?? 0
            stopsPercent = [0, 30, 100].randomElement(using: &random) ?? 0
            weights = (0..<4).map { _ in [0, 1, 1, 5].randomElement(using: &random) ?? 1 }
            if weights.allSatisfy({ $0 == 0 }) { weights[1] = 1 }
            options = [[], [], ["--history-changes", "0"]].randomElement(using: &random) ?? []
        }
    }

    private let seed: UInt64
    private let place: Place
    private var random: SplitMix
    private let habits: Habits
    private var clients: [Client]
    private var history: [Operation] = []
    private var faults: [String] = []
    /// Rises with each turn of the world outside, over all lives.
    private var turn: Int64 = 0
    private var time: Int64 = 0
    private var nextValue = 0
    private(set) var steps: UInt64 = 0
    /// What distinguishes this run from others, of all of its lives.
    private(set) var trace: [UInt64] = []

    init(seed: UInt64, _ place: Place) {
        (self.seed, self.place) = (seed, place)
        random = SplitMix(seed: seed)
        habits = Habits(&random)
        clients = (0..<habits.clientCount).map { Client($0) }
    }

    var operationCount: Int { history.count }

    var summary: String {
        "\(history.count) operations of \(clients.count) clients, \(trace.count) lives, \(steps) steps, "
            + "\(time / 1_000_000) ms"
    }

    private var socket: String { place.directory + "/s" }

    /// - Returns: What does not hold, a sentence each.
    func run() -> [String] {
        removeAll(place.directory)
        mkdir(place.directory, 0o700)
        for life in 1...habits.lifeCount {
            live(isLast: life == habits.lifeCount)
            guard faults.isEmpty else { return faults }
        }
        for (key, verdict) in LinearizabilityCheck().verdicts(of: history) {
            guard case .refuted(let refutation) = verdict else { continue }
            faults.append("key \(key): no order explains the replies\n\(refutation)")
        }
        return faults
    }

    private func live(isLast: Bool) {
        let life = Life(
            [
                "setarch", "-R", place.program, "--socket", socket, "--data",
                place.directory + "/data",
            ] + habits.options,
            environment: [
                "LD_PRELOAD=\(place.kernel)", "SIMULATION_CONTROL=9",
                "SIMULATION_SEED=\(random.next() >> 1)", "SIMULATION_TIME=\(time)",
                "SIMULATION_LOST_WRITE=\(place.lostWrite)", "SWIFT_DETERMINISTIC_HASHING=1",
                "PATH=/usr/bin:/bin", "HOME=\(place.directory)",
            ] + (place.record.map { ["SIMULATION_RECORD=\($0)"] } ?? []),
            log: place.directory + "/log"
        )
        let isKilled = !isLast && !random.chance(habits.stopsPercent)
        let last = turn + Int64.random(in: 1...Int64(habits.turnCount), using: &random)
        var (isStopping, end) = (false, Life.Message())
        while let message = life.wait() {
            (end, turn) = (message, turn + 1)
            if message.kind == Int64(UInt8(ascii: "E")) { break }
            if isStopping {
                for index in clients.indices { receive(index) }
                life.go(nextAfter: 1_000_000)
            } else if turn >= last, isKilled {
                life.go(on: .kill, nextAfter: 0)
            } else if turn >= last, settle() {
                isStopping = true
                life.go(on: .terminate, nextAfter: 1_000_000)
            } else {
                if turn < last { act() }
                let isLong = random.chance(2)
                life.go(
                    nextAfter: .random(in: 0...(isLong ? 2_000_000_000 : 200_000), using: &random)
                )
            }
            // Whatever was asked is answered: nobody waits for a minute of a system that has nothing else to do.
            if turn > last + 20_000 {
                faults.append("clients wait for replies for ever: \(clients.map(\.pendingCount))")
                life.go(on: .kill, nextAfter: 0)
            }
        }
        let status = life.end()
        (time, steps) = (end.time, steps + end.steps)
        trace.append(end.trace)
        for index in clients.indices {
            history += clients[index].cut(at: turn, isDaemonAlive: false)
        }
        let isExpected = isStopping ? end.reason == "exit" && status == 0 : end.reason == "killed"
        if !isExpected { faults.append("life \(trace.count) ended with \(status): \(end.reason)") }
    }

    /// What one client does in its turn.
    private func act() {
        let index = Int.random(in: clients.indices, using: &random)
        guard clients[index].isConnected else { return clients[index].connect(to: socket) }
        if random.chance(habits.cutsPercent) {
            history += clients[index].cut(at: turn, isDaemonAlive: true)
            return
        }
        while clients[index].pendingCount < habits.depth, random.chance(70) { ask(index) }
        clients[index].send(
            upTo: random.chance(habits.partsPercent) ? Int.random(in: 1...40, using: &random) : .max
        )
        receive(index)
    }

    private func ask(_ index: Int) {
        let key = "k/\(Int.random(in: 0..<habits.keyCount, using: &random))"
        var drawn = Int.random(in: 0..<habits.weights.reduce(0, +), using: &random)
        var kind = 0
        while drawn >= habits.weights[kind] {
            (drawn, kind) = (drawn - habits.weights[kind], kind + 1)
        }
        nextValue += 1
        let request: Operation.Request =
            switch kind {
            case 0: .get
            case 1: .set("\(nextValue)")
            case 2: .delete
            default: .add(Int64(nextValue))
            }
        clients[index].ask(request, of: key, at: turn)
    }

    private func receive(_ index: Int) {
        guard clients[index].isConnected else { return }
        if let operations = clients[index].receive(at: turn) {
            history += operations
        } else {
            history += clients[index].cut(at: turn, isDaemonAlive: true)
        }
    }

    /// Has everything answered before a stop, and every key read.
    ///
    /// - Returns: Whether that is done.
    private func settle() -> Bool {
        for index in clients.indices {
            if !clients[index].isConnected { clients[index].connect(to: socket) }
            guard clients[index].isConnected else { return false }
            clients[index].send(upTo: .max)
            receive(index)
        }
        return clients.allSatisfy(\.isIdle)
    }

    private func removeAll(_ directory: String) {
        guard let stream = opendir(directory) else { return }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != ".." else { continue }
            let path = directory + "/" + name
            if unlink(path) != 0 { removeAll(path) }
        }
        rmdir(directory)
    }
}
