import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Law 5, bounded: what a client does that does not read, or does not end what it sends, or a disk that stalls.
struct BoundTests {
    private func value(_ byteCount: Int) -> String { String(repeating: "v", count: byteCount) }

    // MARK: A disk that stalls

    @Test func `changes of a user at their limit pause its writers, not readers`() throws {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { $0.limits.queueByteCount = 160_000 }
        let (writer, other, reader) = try (server.connect(), server.connect(), server.connect(3))
        _ = try reader.ask("SET free 1")
        backing.hold()
        for number in 0..<20 { try writer.send("SET k\(number) \(value(1_000))", "PING") }
        try other.send("INCR n", "PING")
        try server.catchUp()
        let uncommitted = try #require(try reader.ask("STATE.STATUS")["uncommitted"]?.integerValue)
        #expect((10_000...11_100).contains(uncommitted))
        #expect(try other.arrived() == [])
        #expect(try reader.ask("GET free") == .bulk([0x31]))
        try reader.expect("> MULTI\n> GET free\n> EXEC\n+OK\n+QUEUED\n[\"1\"]")
        // A transaction that writes waits at EXEC, and no sooner.
        try reader.send("MULTI", "SET free 2", "EXEC")
        try server.catchUp()
        #expect(try reader.arrived().map(\.shown) == ["+OK", "+QUEUED"])

        backing.open()
        #expect(try writer.next(40) == (0..<20).flatMap { _ in [.simple("OK"), .simple("PONG")] })
        #expect(try other.next(2) == [.integer(1), .simple("PONG")])
        #expect(try reader.next() == .array([.simple("OK")]))
        #expect(server.durable().count == 22)
    }

    @Test(.enabled(if: TestUser.areThere))
    func `bounded: who writes much has a sixteenth of the queue to the disk, and others the rest`()
        throws
    {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { $0.limits.queueByteCount = 800_000 }
        let greedy = try (0..<40).map { _ in try server.connect(as: TestUser.names[0]).peer }
        let other = try server.connect(as: TestUser.names[1]).peer
        backing.hold()
        let commands = (0..<10).map { "SET k\($0) \(value(10_000))" }
        for peer in greedy { try peer.send(commands.map(Peer.words)) }
        try server.catchUp()
        try other.send("SET other 1")
        try server.catchUp()
        let status = try server.connect().ask("STATE.STATUS")
        let uncommitted = try #require(status["uncommitted"]?.integerValue)
        #expect((50_000..<75_000).contains(uncommitted), "\(uncommitted)")
        backing.open()
        #expect(try other.next() == .simple("OK"))
        for peer in greedy { #expect(try peer.next(10).allSatisfy { $0 == .simple("OK") }) }
    }

    @Test(.enabled(if: TestUser.areThere))
    func `bounded: a burst of one user's commands does not stay before those of others`() throws {
        let server = try ServedKeyspace()
        let greedy = try (0..<80).map { _ in try server.connect(as: TestUser.names[0]).peer }
        let other = try server.connect(as: TestUser.names[1]).peer
        var command = RequestWriter()
        command.append(Peer.words("MGET" + (0..<9_000).map { " k\($0)" }.joined()))
        var fewest = Int.max
        for _ in 0..<5 {
            for peer in greedy { try peer.socket.send(command.bytes) }
            #expect(try other.ask("PING") == .simple("PONG"))
            let answered = try greedy.map { try $0.arrived().count }
            fewest = min(fewest, answered.reduce(0, +))
            for (peer, count) in zip(greedy, answered) where count == 0 { _ = try peer.next() }
        }
        // The test itself may have waited for a processor before it sent its PING.
        #expect(fewest < 40)
    }

    @Test func `bounded: what a transaction reads is remembered as long as it may have commands`()
        throws
    {
        let server = try ServedKeyspace()
        let (reader, other) = try (server.connect(3), server.connect())
        for command in ["CLIENT TRACKING ON", "MULTI", "NOSUCH"] { _ = try reader.ask(command) }
        for _ in 0..<2_000 { #expect(try reader.ask("GET \(value(900))").errorText == nil) }
        let memory = try #require(try other.ask("STATE.STATUS")["client_memory"]?.integerValue)
        #expect(memory < 200_000, "\(memory)")
        _ = try reader.ask("EXEC")
        // Nothing of the transaction that was refused is a copy.
        for command in ["MULTI", "GET x", "EXEC"] { _ = try reader.ask(command) }
        let lines = try #require(try other.ask("INFO stats").textValue)
        #expect(lines.contains("tracking_total_items:1\r\n"))
    }

    @Test(.enabled(if: TestUser.areThere))
    func `bounded: globs that STATE.CHANGES waits with count as those of watches`() throws {
        let server = try ServedKeyspace()
        let peers = try (0..<3).map { _ in
            try server.connect(as: TestUser.names[0]).peer
        }
        let globs = (0..<60).map { " *x\($0)" }.joined()
        try peers[0].send("STATE.CHANGES SINCE 0 BLOCK 0\(globs)")
        try server.catchUp()
        let refused = try peers[1].ask("STATE.CHANGES SINCE 0 BLOCK 0\(globs)")
        #expect(refused.errorText?.hasPrefix("LIMIT") == true)
        peers[0].socket.end()
        try server.waitForClients(2)
        try peers[2].send("STATE.CHANGES SINCE 0 BLOCK 0\(globs)")
        try server.catchUp()
        #expect(try peers[2].arrived().isEmpty)
    }

    @Test(.enabled(if: TestUser.areThere))
    func `bounded: patterns of all clients of a user have a limit`() throws {
        let server = try ServedKeyspace { $0.watchCount = 20 }
        let peers = try (0..<3).map { _ in try server.connect(as: TestUser.names[0]).peer }
        let patterns = (0..<20).map { " k\($0)/" }.joined()
        for peer in peers { _ = try peer.ask("HELLO 3") }
        for peer in peers[..<2] {
            for _ in 0..<5 { #expect(try peer.ask("STATE.WATCH\(patterns)")["watch"] != nil) }
        }
        for command in ["STATE.WATCH k/", "STATE.CHANGES SINCE 0 BLOCK 0 k/"] {
            let error = try #require(try peers[2].ask(command).errorText)
            #expect(error.hasPrefix("LIMIT uid "), "\(error)")
            #expect(error.contains("would have 201 patterns in watches"), "\(error)")
        }
        _ = try peers[0].ask("STATE.UNWATCH 1")
        #expect(try peers[2].ask("STATE.WATCH k/")["watch"] != nil)
        // Others have their own.
        let other = try server.connect(as: TestUser.names[1]).peer
        _ = try other.ask("HELLO 3")
        #expect(try other.ask("STATE.WATCH k/")["watch"] != nil)
    }

    @Test(.enabled(if: TestUser.areThere))
    func `complete and unique: watches of costly globs get each commit once, though later`() throws
    {
        let stored = try StoredServer()
        let watcher = try stored.server.connect(as: TestUser.names[0]).peer
        let (writer, other) = try (stored.connect(), stored.connect())
        _ = try watcher.ask("HELLO 3")
        for number in 0..<100 {
            #expect(try watcher.ask("STATE.WATCH *a*b\(number)")["watch"] != nil)
        }
        _ = try other.ask("STATE.WATCH *b7")
        let head = String(repeating: "a", count: 900)
        let pairs = (0..<300).map { "\($0)\(head)b\($0 % 100) 1" }.joined(separator: " ")
        for _ in 0..<3 { #expect(try writer.ask("MSET \(pairs)") == .simple("OK")) }
        for revision in 1...3 {
            #expect(try other.next().pushRevision == Int64(revision))
        }
        // Three keys of each of three commits, for each of 100 watches.
        var revisions: [Int64: [Int64]] = [:]
        var count = 0
        while count < 300 {
            let push = try watcher.next()
            guard push.pushKind == "state.change" else {
                #expect(push.pushKind == "state.progress", "\(push.shown.prefix(100))")
                continue
            }
            revisions[push.elements?[1].integerValue ?? -1, default: []].append(push.pushRevision)
            count += 1
        }
        #expect(revisions.count == 100)
        #expect(revisions.values.allSatisfy { $0 == [1, 2, 3] })
    }

    @Test func `a writer that left while it was paused does not come back`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing) { $0.limits.queueByteCount = 10 }
        let (writer, leaving) = try (server.connect(), server.connect())
        try writer.send("SET a \(value(20))")
        #expect(backing.held() != nil)
        try leaving.send("SET b 1")
        try server.catchUp()
        leaving.socket.end()
        try server.waitForClients(1)
        backing.open()
        #expect(try writer.next() == .simple("OK"))
        #expect(try writer.ask("EXISTS b") == .integer(0))
    }

    @Test func `without storage a pause ends in the same breath`() throws {
        let server = try ServedKeyspace {
            $0.limits.queueByteCount = 100
            $0.outputByteCount = 1_000
        }
        let peer = try server.connect(3)
        let commands = (0..<200).flatMap { ["SET k\($0) \(value(60))", "GET k\($0)"] }
        try peer.send(commands.map(Peer.words) + [Peer.words("STATE.WATCH /"), Peer.words("PING")])
        let replies = try peer.next(402)
        #expect(
            replies.prefix(400).allSatisfy {
                $0 == .simple("OK") || $0 == .bulk(Array(value(60).utf8))
            }
        )
        #expect(replies.last == .simple("PONG"))
    }

    // MARK: A client that asks for much

    @Test func `the patterns of all watches of a client have a limit`() throws {
        let server = try ServedKeyspace { $0.watchCount = 20 }
        let peer = try server.connect(3)
        let watch = ["STATE.WATCH"] + (0..<20).map { "k\($0)" }
        for _ in 0..<10 { #expect(try peer.ask(watch.joined(separator: " "))["watch"] != nil) }
        #expect(
            try peer.ask("STATE.WATCH k").errorText
                == "LIMIT more than 200 patterns in all watches of one client"
        )
        _ = try peer.ask("STATE.UNWATCH 1")
        #expect(try peer.ask("STATE.WATCH k")["watch"] != nil)
        _ = try peer.ask("RESET")
        _ = try peer.ask("HELLO 3")
        for _ in 0..<10 { #expect(try peer.ask(watch.joined(separator: " "))["watch"] != nil) }
        #expect(try server.connect(3).ask("STATE.WATCH k")["watch"] != nil)
    }

    // MARK: A client that does not read

    /// What waits for the first client of CLIENT LIST.
    private func waitingByteCount(of clients: Reply) throws -> Int {
        let line = try #require(clients.textValue?.split(separator: "\n").first)
        let field = line.split(separator: " ").first { $0.hasPrefix("omem=") }
        return try #require(field.flatMap { Int($0.dropFirst(5)) })
    }

    @Test func `a client that never reads costs no more than its output limit`() throws {
        let limit = 1 << 20
        let server = try ServedKeyspace { $0.outputByteCount = limit }
        let (peer, other) = try (server.connect(), server.connect())
        _ = try other.ask("SET k \(value(8 << 10))")
        var requests = RequestWriter()
        for _ in 0..<10_000 { requests.append(words: "GET", "k") }
        var sent = 0
        try server.waitUntil("a pause") {
            let count = try peer.socket.sendAtOnce(requests.bytes[sent...])
            sent += count
            return count == 0
        }
        // What was sent may not all be read yet.
        var waiting = 0
        try server.waitUntil("output that waits") {
            waiting = try waitingByteCount(of: other.ask("CLIENT LIST"))
            return waiting > limit / 2
        }
        #expect(waiting <= limit + 9 << 10)
        #expect(try other.ask("STRLEN k") == .integer(8 << 10))
        // When it reads again, nothing is missing.
        try peer.socket.send(Array(requests.bytes[sent...]))
        for _ in 0..<10_000 { try #require(try peer.next() == .bulk(Array(value(8 << 10).utf8))) }
        #expect(try peer.ask("PING") == .simple("PONG"))
    }

    @Test func `replies that are held count as output`() throws {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { $0.outputByteCount = 10_000 }
        let (peer, other) = try (server.connect(), server.connect(3))
        _ = try peer.ask("SET k \(value(1_000))")
        backing.hold()
        try peer.send((0..<100).map { _ in Peer.words("STATE.APPLY 1 SET n 1") })
        try peer.send((0..<1_000).map { _ in Peer.words("GET k") })
        try server.catchUp()
        let waiting = try waitingByteCount(of: other.ask("CLIENT LIST"))
        #expect((10_000...12_000).contains(waiting))
        backing.open()
        _ = try peer.next(100)
        for _ in 0..<1_000 { try #require(try peer.next() == .bulk(Array(value(1_000).utf8))) }
    }

    // MARK: A client that does not end what it sends

    @Test func `input beyond its limit lets the largest go`() throws {
        let server = try ServedKeyspace { $0.inputByteCount = 1 << 20 }
        let peers = try (0..<4).map { _ in try server.connect() }
        let head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$600000\r\n"
        for (peer, byteCount) in zip(peers, [200_000, 400_000, 300_000, 200_000]) {
            try? peer.socket.send(head + value(byteCount))
            try server.catchUp()
        }
        // The fourth crosses the limit; the second has the most, however much is read at once.
        #expect(
            try peers[1].rest().map(\.shown)
                == [
                    "-LIMIT the unfinished input of all clients is above limits.inputBytes, 1048576 "
                        + "bytes"
                ]
        )
        #expect(
            server.log.current.contains { $0.hasPrefix("<4> ") && $0.contains("unfinished input") }
        )
        peers[3].socket.end()
        try server.waitForClients(2)
        for peer in [peers[0], peers[2]] {
            let sent = peer === peers[0] ? 200_000 : 300_000
            try peer.socket.send(value(600_000 - sent) + "\r\n")
            #expect(try peer.next() == .simple("OK"))
        }
        #expect(try peers[0].ask("STRLEN k") == .integer(600_000))
    }

    @Test func `what is queued for EXEC counts as input`() throws {
        let server = try ServedKeyspace { $0.inputByteCount = 1 << 20 }
        let (large, small) = try (server.connect(), server.connect())
        try small.send("MULTI", "SET k \(value(300_000))")
        #expect(try small.next(2).map(\.shown) == ["+OK", "+QUEUED"])
        // A transaction that has ended counts no more.
        for end in ["EXEC", "DISCARD", "RESET"] {
            for _ in 0..<3 {
                try large.send("MULTI", "SET l \(value(500_000))", end)
                _ = try large.next(3)
            }
        }
        try? large.send("MULTI", "SET l \(value(500_000))", "SET m \(value(500_000))")
        #expect(
            try large.rest().map(\.shown).last
                == "-LIMIT the unfinished input of all clients is above limits.inputBytes, 1048576 bytes"
        )
        #expect(try small.ask("EXEC") == .array([.simple("OK")]))
        let last = try server.connect()
        try last.send("MULTI", "SET l \(value(500_000))", "SET m \(value(500_000))", "EXEC")
        #expect(try last.next(4).last == .array([.simple("OK"), .simple("OK")]))
    }

    // MARK: Many clients

    @Test func `1,000 clients at once are served, and one more is refused`() throws {
        ByteSocket.allow(6_000)
        let server = try ServedKeyspace { $0.clientCount = 1_000 }
        let peers = try (0..<1_000).map { _ in try server.connect() }
        for (number, peer) in peers.enumerated() { try peer.send("INCR n", "ECHO \(number)") }
        var counts: Set<Int64> = []
        for (number, peer) in peers.enumerated() {
            counts.insert(try peer.next().integerValue ?? 0)
            try #require(try peer.next() == .bulk(Array(String(number).utf8)))
        }
        #expect(counts == Set(1...1_000))
        // Who runs the daemon has places of his own beyond that.
        let own = try (0..<8).map { _ in try server.connect() }
        for peer in own { #expect(try peer.ask("PING") == .simple("PONG")) }
        let refused = try server.connect()
        #expect(
            try refused.rest().map(\.shown) == ["-ERR max number of clients reached"]
        )
        peers[7].socket.end()
        let isServed = try eventually { try server.connect().ask("PING") == .simple("PONG") }
        try #require(isServed, "the place of who left is not given away")
        #expect(try peers[8].ask("GET n") == .bulk(Array("1000".utf8)))
        withExtendedLifetime((peers, own)) {}
    }
}

struct StoppingTests {
    @Test func `stopping commits and answers what was accepted, and parses no more`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let (writer, idle) = try (server.connect(), server.connect())
        try writer.send("SET a 1", "GET a")
        #expect(backing.held() != nil)
        _ = try idle.ask("PING")
        server.requestStop()
        #expect(try idle.rest() == [])
        try? writer.send("SET b 1")
        backing.open()
        #expect(try writer.rest().map(\.shown) == ["+OK", #""1""#])
        server.stop()
        #expect(backing.kept.map(\.key) == [Array("a".utf8)])
        #expect(backing.isClosed)
    }

    @Test func `stopping answers a commit that fails with its error`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let writer = try server.connect()
        try writer.send("SET a 1", "PING")
        #expect(backing.held() != nil)
        server.requestStop()
        backing.fail(StateError(.readOnly, "outcome unknown: EIO"))
        #expect(try writer.rest().map(\.shown) == ["-READONLY outcome unknown: EIO", "+PONG"])
        server.stop()
        #expect(backing.kept == [])
    }
}
