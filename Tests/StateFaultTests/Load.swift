import StateEngine
import StateTestSupport
import StateWire

/// Clients of a server that write, read and watch at once, and what they were told.
///
/// Each has a thread and a connection of its own.
final class Load: Sendable {
    private let files: FaultyFiles
    private let socketPath: String
    private let told = Observed<[Told]>([])
    private let problems = Observed<[String]>([])
    /// Whether syncs fail now and then, so that writes may be refused.
    private let hasFailures: Bool
    private let isOver: @Sendable () -> Bool

    /// Prepares for clients that go on until `isOver`.
    init(
        _ socketPath: String,
        on files: FaultyFiles,
        failing hasFailures: Bool,
        until isOver: @escaping @Sendable () -> Bool
    ) {
        self.socketPath = socketPath
        self.files = files
        self.hasFailures = hasFailures
        self.isOver = isOver
    }

    /// What was told, and what went wrong otherwise.
    var outcome: (told: [Told], problems: [String]) { (told.current, problems.current) }

    /// Runs `writerCount` writers and one watcher, to their end.
    func run(writerCount: Int, seed: UInt64) throws {
        let watcher = try Peer(socketPath)
        _ = try watcher.ask("HELLO 3")
        _ = try watcher.ask("STATE.WATCH /")
        let moved = Transfer(watcher)
        let watching = start("watcher") { try self.watch(moved.take()) }
        let writing = (0..<writerCount).map { number in
            start("writer") { try self.write(as: number, seed: seed) }
        }
        for thread in writing { thread.join() }
        files.heal()
        try endWatching()
        watching.join()
    }

    /// The watcher ends with the commit of this key; the store may not be open again yet.
    ///
    /// After many failures that is tried every 10 s only (``CommitQueue/reopen(_:)``), and it takes time.
    private func endWatching() throws {
        let peer = try Peer(socketPath)
        var reply = Reply.null
        let isTaken = try eventually(within: .seconds(30)) {
            reply = try peer.ask("SET end end")
            return reply == .simple("OK")
        }
        guard isTaken else {
            throw SystemFailure("writes are not taken again within 30 s: \(reply.shown)")
        }
    }

    /// One of the next syncs fails, if none is about to.
    private func failSoon(after failedCount: inout Int, _ random: inout SplitMix) {
        guard hasFailures, files.failedCount >= failedCount else { return }
        failedCount = files.failedCount + 1
        files.fail(.sync, number: Int.random(in: 1...30, using: &random))
    }

    private func start(
        _ name: String,
        _ body: @escaping @Sendable () throws -> Void
    )
        -> WorkerThread
    {
        let thread = WorkerThread(name: name)
        thread.start { [problems] in
            do {
                try body()
            } catch {
                problems.update { $0.append("\(name): \(error)") }
            }
        }
        return thread
    }

    private func watch(_ peer: Peer) throws {
        var last: Int64 = 0
        while true {
            guard case .push(let parts) = try peer.next(), parts.count == 4,
                let revision = parts[2].integerValue, let rows = parts[3].elements
            else { throw SystemFailure("something else than a commit was pushed") }
            let changes = rows.map { row in
                Told.Change(
                    key: row.elements?.first?.textValue ?? "",
                    value: row.elements?.last?.textValue
                )
            }
            if parts[0].textValue != "state.change" || revision <= last {
                throw SystemFailure("after revision \(last): \(Reply.push(parts).shown)")
            }
            last = revision
            note(changes, revision: revision, isWhole: true)
            if changes.contains(where: { $0.key == "end" }) { return }
        }
    }

    private func write(as number: Int, seed: UInt64) throws {
        var writer = Writer(number: number, random: SplitMix(seed: seed &* 31 &+ UInt64(number)))
        let peer = try Peer(socketPath)
        var failedCount = 0
        while !isOver() {
            if number == 0 { failSoon(after: &failedCount, &writer.random) }
            let requests = writer.nextRequests()
            try peer.send(requests.flatMap(\.commands).map(Peer.words))
            for request in requests {
                let replies = try peer.next(request.commands.count)
                if hasFailures, let last = replies.last, last.isRefusal { continue }
                guard let told = request.told(by: replies) else {
                    throw SystemFailure("\(request.commands): \(replies.map(\.shown))")
                }
                if !told.changes.isEmpty { note(told.changes, revision: told.revision) }
            }
        }
    }

    private func note(_ changes: [Told.Change], revision: Int64?, isWhole: Bool = false) {
        let place = files.callCount
        let one = Told(place: place, revision: revision, changes: changes, isWhole: isWhole)
        told.update { $0.append(one) }
    }
}

extension Reply {
    /// Whether this is what a commit is answered with that failed, and what comes before the store is open again.
    fileprivate var isRefusal: Bool {
        if case .error(let error) = self {
            [.readOnly, .executionAborted].contains(error.code)
        } else {
            false
        }
    }
}

/// Hands an object over to another thread: whoever made it does not touch it any more.
private final class Transfer<Value>: @unchecked Sendable {
    private let value: Value
    init(_ value: Value) { self.value = value }
    func take() -> Value { value }
}
