import Glibc
import StateEngine
import StateJSON
import StateRules
import StateServer
import StateTestSupport
import StateWire

/// One of two servers that carry out the same trace, but for what is hidden from the observer.
///
/// Users: root; the holder, who may read what is hidden; the observer.
final class TraceWorld {
    let stored: StoredServer
    /// Reads what the observer gets; connection by connection, in the order in which they were made.
    private(set) var observers: [Observer] = []
    private let root: Peer
    private let holder: Peer
    private let observer: TestUser
    private let accounts: AccountDirectory
    private var markCount = 0

    /// A connection of the observer.
    final class Observer {
        let peer: Peer
        let version: Int
        /// What came and was not compared yet: replies in their order, pushes in theirs.
        ///
        /// A push that a thread makes may come before or behind a reply.
        fileprivate(set) var replies: [Reply] = []
        fileprivate(set) var pushes: [Reply] = []
        fileprivate(set) var hasEnded = false
        /// The cursor of the last SCAN, which begins at random.
        fileprivate var cursor: [UInt8] = [UInt8(ascii: "0")]

        fileprivate init(_ peer: Peer, _ version: Int) {
            (self.peer, self.version) = (peer, version)
        }

        /// What has come since the last call.
        func take() -> (replies: [Reply], pushes: [Reply], hasEnded: Bool) {
            defer { (replies, pushes) = ([], []) }
            return (replies, pushes, hasEnded)
        }
    }

    init(_ rules: String, holder holding: TestUser, observer: TestUser) throws {
        stored = try StoredServer {
            // Bookmarks come by the clock.
            $0.progressMilliseconds = .max / 2
        }
        self.observer = observer
        accounts = AccountDirectory(
            user: { ["holder": holding.uid, "observer": observer.uid, "root": 0][$0] },
            group: { _ in nil }
        )
        let socket = stored.server.socketPath
        guard chmod(String(socket.dropLast(2)), 0o755) == 0, chmod(socket, 0o666) == 0 else {
            throw SystemFailure(call: "chmod", errno)
        }
        root = try stored.connect()
        holder = Peer(try holding.connect(to: socket))
        _ = try holder.ask("HELLO 3")
        try exchange(rules)
        try ask(.root, ["SET", "free", "1"])
        for version in [2, 3] { try connect(version) }
    }

    // MARK: What others do

    enum Other { case root, holder }

    /// Has another user do something, and waits until all of it is done.
    func ask(_ other: Other, _ command: [String]) throws {
        let peer = other == .root ? root : holder
        _ = try answer(to: [command], peer)
        try settle()
    }

    /// Exchanges the rules; a trace in the two worlds has the same.
    func exchange(_ rules: String) throws {
        let text = Array("{\"rules\": [\(rules)]}".utf8)
        let table = try Configuration(JSONValue(parsing: text), accounts: accounts).rules
        try stored.server.exchangeRules(table.byKey)
        try settle()
    }

    /// Waits until every commit is stored, and every watch has what it is delivered.
    private func settle() throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            let isStored = stored.server.keyspace.withCore {
                $0.revisions.provisional <= $0.revisions.durable
            }
            let status = isStored ? try answer(to: [["STATE.STATUS"]], root).replies.first : nil
            let left = ["watches_catching_up", "watches_blocked"].compactMap {
                status?[$0]?.integerValue
            }
            if left == [0, 0] { return }
            // What they do not read would block their watches.
            _ = try answer(to: [], holder)
            try listen()
        }
        throw SystemFailure("the server is not at rest within a minute")
    }

    // MARK: What the observer does

    @discardableResult
    func connect(_ version: Int) throws -> Observer {
        let peer = Peer(try observer.connect(to: stored.server.socketPath))
        let connection = Observer(peer, version)
        observers.append(connection)
        try ask(connection, [["HELLO", "\(version)"]])
        return connection
    }

    /// The connection of this number ends.
    func end(_ connection: Observer) {
        connection.peer.socket.end()
        observers.removeAll { $0 === connection }
    }

    /// Has the observer send commands, and waits until they are answered and all is at rest.
    func ask(_ connection: Observer, _ commands: [[String]]) throws {
        var commands = commands
        for index in commands.indices where commands[index].first == "SCAN" {
            commands[index][1] = String(decoding: connection.cursor, as: UTF8.self)
        }
        do {
            let answer = try answer(to: commands, connection.peer)
            note(answer, to: commands, connection)
        } catch { connection.hasEnded = true }
        try settle()
        try listen()
    }

    /// Takes what was pushed to all connections of the observer.
    func listen() throws {
        for connection in observers where !connection.hasEnded {
            do { note(try answer(to: [], connection.peer), to: [], connection) } catch {
                connection.hasEnded = true
            }
        }
    }

    private func note(
        _ answer: (replies: [Reply], pushes: [Reply]),
        to commands: [[String]],
        _ connection: Observer
    ) {
        connection.pushes += answer.pushes
        for (index, reply) in answer.replies.enumerated() {
            if index < commands.count, commands[index].first == "SCAN",
                let parts = reply.elements, parts.count == 2, let cursor = parts[0].byteValue
            {
                connection.cursor = cursor
                let isEnd = cursor == [UInt8(ascii: "0")]
                connection.replies.append(.array([.simple(isEnd ? "end" : "cursor"), parts[1]]))
            } else {
                connection.replies.append(reply)
            }
        }
    }

    /// What comes up to the reply to a mark.
    private func answer(
        to commands: [[String]],
        _ peer: Peer
    ) throws -> (replies: [Reply], pushes: [Reply]) {
        markCount += 1
        let mark = Array("mark-\(markCount)-".utf8)
        try peer.send(
            (commands + [["ECHO"]]).map { $0.map { Array($0.utf8) } }.dropLast() + [
                [Array("PING".utf8), mark]
            ]
        )
        var (replies, pushes): ([Reply], [Reply]) = ([], [])
        while true {
            let reply = try peer.next()
            if case .push = reply {
                pushes.append(reply)
                continue
            }
            // Under RESP2 a connection that subscribes is answered with a list.
            if reply.byteValue == mark || reply.elements?.last?.byteValue == mark {
                return (replies, pushes)
            }
            replies.append(reply)
        }
    }
}

extension Reply {
    /// The reply without what differs between any two servers: epochs, times, processes, amounts of memory and of what
    /// waits for a client.
    var withoutChance: String {
        shown
            .replacing(/\b[0-9a-f]{16}\b/, with: "EPOCH")
            .replacing(/\/[^ "]*\/s\b/, with: "SOCKET")
            .replacing(/"(pid|uptime|time|waiting|client_memory[a-z_]*)"(, |: )-?[0-9]+/) {
                "\($0.output.1)"
            }
            .replacing(
                /(process_id|uptime_in_[a-z]+|total_[a-z_]+|run_id|server_time_usec|used_cpu_[a-z]+):[0-9a-f.]+/
            ) {
                "\($0.output.1)"
            }
            .replacing(
                /\b(fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem|tot-net-in|tot-net-out|tot-cmds)=[0-9]+/
            ) {
                "\($0.output.1)"
            }
            .replacing(/[0-9]{8,}(", "[0-9]{1,6}"\])?/, with: "TIME")
    }
}
