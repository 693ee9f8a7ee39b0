import StateEngine
import StateTestSupport
import StateWire
import Synchronization

/// Clients of a server that write, read and watch at once, and what they were told.
///
/// Each has a thread and a connection of its own.
final class Load: Sendable {
    private let faults: Faults
    private let socketPath: String
    private let told = Observed<[Told]>([])
    private let problems = Observed<[String]>([])
    private let isOver: @Sendable () -> Bool

    /// Prepares for clients that go on until `isOver`.
    init(_ socketPath: String, on faults: Faults, until isOver: @escaping @Sendable () -> Bool) {
        self.socketPath = socketPath
        self.faults = faults
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
        // The watcher ends with this one.
        _ = try Peer(socketPath).ask("SET end end")
        watching.join()
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
        while !isOver() {
            let requests = writer.nextRequests()
            try peer.send(requests.flatMap(\.commands).map(Peer.words))
            for request in requests {
                let replies = try peer.next(request.commands.count)
                guard let told = request.told(by: replies) else {
                    throw SystemFailure("\(request.commands): \(replies.map(\.shown))")
                }
                if !told.changes.isEmpty { note(told.changes, revision: told.revision) }
            }
        }
    }

    private func note(_ changes: [Told.Change], revision: Int64?, isWhole: Bool = false) {
        let place = faults.place
        let one = Told(place: place, revision: revision, changes: changes, isWhole: isWhole)
        told.update { $0.append(one) }
    }
}

/// Hands an object over to another thread: whoever made it does not touch it any more.
private final class Transfer<Value>: @unchecked Sendable {
    private let value: Value
    init(_ value: Value) { self.value = value }
    func take() -> Value { value }
}
