import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What takes long is done in slices, and others are served between them.
struct FairnessTests {
    private let server: ServedKeyspace

    init() throws {
        server = try ServedKeyspace()
        try FairnessTests.fill(server, count: 30_000)
    }

    private static func fill(_ server: ServedKeyspace, count: Int) throws {
        let peer = try server.connect()
        for start in stride(from: 0, to: count, by: 1_000) {
            let pairs = (start..<start + 1_000).map { "m/\($0) v" }
            _ = try peer.ask("MSET \(pairs.joined(separator: " "))")
        }
    }

    @Test(arguments: [
        "KEYS *zz", "STATE.LIST *zz COUNT", "STATE.LIST m/ COUNT", "STATE.DELETE *zz",
        "STATE.DELETE * DRYRUN", "SCAN 0 MATCH *zz COUNT 1000000",
    ])
    func `a pipeline of commands over all keys keeps no other client waiting`(
        command: String
    ) throws {
        let (greedy, other) = try (server.connect(), server.connect())
        try greedy.send(Array(repeating: Peer.words(command), count: 100))
        _ = try greedy.next()
        #expect(try other.ask("PING").shown == "+PONG")
        // They were all sent with the first: had they been one turn, all would be answered.
        #expect(try greedy.arrived().count < 99)
    }

    @Test func `a listing in slices is the state of one moment`() throws {
        let (reader, writer) = try (server.connect(), server.connect())
        _ = try writer.ask("SET a 1")
        var isFirst = true
        for _ in 0..<60 {
            try reader.send("STATE.LIST / KEYS", "STATE.LIST / COUNT", "KEYS *")
            // The token goes from one end of the keys to the other, and back.
            for _ in 0..<5 {
                try writer.send(
                    "STATE.APPLY 2 DELETE \(isFirst ? "a" : "z") SET \(isFirst ? "z" : "a") 1"
                )
                _ = try writer.next()
                isFirst.toggle()
            }
            let rows = try #require(try reader.next().elements).compactMap {
                $0.elements?.first?.textValue
            }
            #expect(rows.count == 30_001)
            #expect(
                rows == rows.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
            )
            #expect(try reader.next() == .integer(30_001))
            let names = try #require(try reader.next().elements).compactMap(\.textValue)
            #expect(names.filter { $0 == "a" || $0 == "z" }.count == 1)
            isFirst = try writer.ask("EXISTS a") == .integer(1)
        }
    }

    @Test func `a limit is kept while keys come and go behind the listing`() throws {
        let (reader, writer) = try (server.connect(), server.connect())
        for round in 0..<40 {
            try reader.send("STATE.LIST / KEYS LIMIT 20000")
            try writer.send(
                (0..<20).map {
                    Peer.words(
                        "\(round % 2 == 0 ? "SET" : "DEL") a/\($0)\(round % 2 == 0 ? " 1" : "")"
                    )
                }
            )
            _ = try writer.next(20)
            #expect(try reader.next().elements?.count == 20_000)
        }
    }

    @Test func `a delete of a glob deletes what matches at its moment, as one commit`() throws {
        let (deleter, writer) = try (server.connect(), server.connect())
        for number in 0..<20 {
            _ = try writer.ask("MSET a/x/\(number) v z/x/\(number) v")
            try deleter.send("STATE.DELETE *x/* m/z*")
            // Behind the place where the listing is, or before it: both or none.
            _ = try writer.ask("MSET a/x/new\(number) v z/x/new\(number) v")
            let count = try deleter.next()["count"]
            let left = try writer.ask("KEYS *x/*").elements?.count
            #expect(count == .integer(4) && left == 0 || count == .integer(2) && left == 2)
            _ = try deleter.ask("STATE.DELETE *x/*")
        }
    }

    @Test func `a client that leaves in the middle of a listing leaves nothing behind`() throws {
        for _ in 0..<20 {
            let peer = try server.connect()
            try peer.send(Array(repeating: Peer.words("KEYS *zz*z"), count: 50))
            _ = try peer.next()
            peer.socket.end()
        }
        #expect(try server.faultsAfterLeaving() == [])
        #expect(server.keyspace.withCore { $0.entries.scanCount } == 0)
    }

    @Test func `a reply is bounded though rows change while it is made`() throws {
        let server = try ServedKeyspace {
            $0.replyByteCount = 64 << 10
        }
        try FairnessTests.fill(server, count: 100_000)
        let (reader, writer) = try (server.connect(), server.connect())
        let value = String(repeating: "v", count: 1_000)
        let rows = (0..<70).map { "a/\($0)z \(value)" }.joined(separator: " ")
        var refusedCount = 0
        for _ in 0..<50 where refusedCount == 0 {
            // All of them come before the place where the listing is.
            try reader.send("STATE.LIST *z")
            _ = try writer.ask("MSET \(rows)")
            let reply = try reader.next()
            if let error = reply.errorText {
                #expect(error.hasPrefix("TOOBIG"), "\(error)")
                refusedCount += 1
            } else {
                // The listing was over before.
                #expect(reply.elements?.isEmpty == true)
            }
            _ = try writer.ask("STATE.DELETE a/")
        }
        #expect(refusedCount > 0)
    }

    @Test(.enabled(if: TestUser.areThere))
    func `keyspace notifications of many globs are delivered in slices, in order`() throws {
        let server = try ServedKeyspace()
        let reader = try server.connect(as: TestUser.names[0]).peer
        let (writer, other) = try (server.connect(), server.connect())
        let globs = (0..<98).map { "__keyspace@0__:*a*a*b\($0)" }.joined(separator: " ")
        try reader.send("PSUBSCRIBE __keyspace@0__:* \(globs)")
        _ = try reader.next(99)
        _ = try other.ask("SUBSCRIBE __keyspace@0__:last")
        let keys = (0..<3_000).map { "\($0)" } + ["last"]
        #expect(
            try writer.ask("MSET \(keys.map { "\($0) 1" }.joined(separator: " "))") == .simple("OK")
        )
        // Those of other users do not wait for them.
        #expect(try other.next().elements?[1].textValue == "__keyspace@0__:last")
        var arrived = try reader.arrived()
        #expect(arrived.count < keys.count)
        while arrived.count < keys.count { arrived.append(try reader.next()) }
        #expect(
            arrived.map { $0.elements?[2].textValue } == keys.map { "__keyspace@0__:\($0)" }
        )
    }

    @Test func `messages of EXEC to many subscribers are delivered in slices, in order`() throws {
        let server = try ServedKeyspace()
        let readers = try (0..<200).map { _ in try server.connect() }
        for reader in readers { _ = try reader.ask("SUBSCRIBE c") }
        let (publisher, other) = try (server.connect(), server.connect())
        try publisher.send(
            [Peer.words("MULTI")] + (0..<1_000).map { Peer.words("PUBLISH c \($0)") }
                + [Peer.words("EXEC"), Peer.words("PUBLISH c last")]
        )
        let counts = try publisher.next(1_002).last?.elements
        #expect(counts == Array(repeating: .integer(200), count: 1_000))
        #expect(try other.ask("PING") == .simple("PONG"))
        // The next command of the publisher waits until all are delivered.
        #expect(try publisher.arrived() == [])
        #expect(try publisher.next() == .integer(200))
        for reader in readers {
            let texts = try reader.next(1_001).map { $0.elements?[2].textValue }
            #expect(texts == (0..<1_000).map { "\($0)" } + ["last"])
        }
    }

    @Test func `messages of EXEC arrive though their sender has left`() throws {
        let server = try ServedKeyspace()
        let readers = try (0..<200).map { _ in try server.connect() }
        for reader in readers { _ = try reader.ask("SUBSCRIBE c") }
        let publisher = try server.connect()
        try publisher.send(
            [Peer.words("MULTI")] + (0..<1_000).map { Peer.words("PUBLISH c \($0)") }
                + [Peer.words("EXEC")]
        )
        publisher.socket.end()
        for reader in readers {
            let texts = try reader.next(1_000).map { $0.elements?[2].textValue }
            #expect(texts == (0..<1_000).map { "\($0)" })
        }
    }

    @Test func `a command behind a late reply that nobody wants runs after it`() throws {
        let peer = try server.connect()
        try peer.send("CLIENT REPLY SKIP", "KEYS *zz", "PING")
        #expect(try peer.next() == .simple("PONG"))
        try peer.send("CLIENT REPLY SKIP", "STATE.CHANGES SINCE 30 BLOCK 1 m/", "PING")
        #expect(try peer.next() == .simple("PONG"))
    }

    @Test func `what a client sent before it left is carried out though its slice was over`() throws
    {
        let peer = try server.connect()
        let keys = Array(repeating: "m", count: 100).joined(separator: " ")
        // Less than the 64 KiB that are read at once, and many slices long.
        try peer.send(
            Array(repeating: Peer.words("EXISTS \(keys)"), count: 88) + [Peer.words("SET last 1")]
        )
        peer.socket.end()
        try server.waitUntil("the last command") { server.durable()["last"] == "1" }
    }

    @Test func `what a client sent before it left is carried out though nobody reads replies`()
        throws
    {
        let peer = try server.connect()
        let text = String(repeating: "e", count: 30 << 10)
        // The server reads 64 KiB at once. The lock keeps it from replying until the client has left.
        try server.keyspace.withCore { _ in
            try peer.send(
                Array(repeating: Peer.words("ECHO \(text)"), count: 3) + [Peer.words("SET last 1")]
            )
            peer.socket.end()
        }
        try server.waitUntil("the last command") { server.durable()["last"] == "1" }
    }

    @Test func `a glob is as long as a key at most`() throws {
        let long = String(repeating: "a*", count: 513)
        let peer = try server.connect()
        for command in ["KEYS \(long)", "SCAN 0 MATCH \(long)"] {
            let error = "TOOBIG the glob has 1026 bytes; the limit is 1024, as for keys"
            #expect(try peer.ask(command).errorText == error)
        }
    }
}

/// What a client without admin rights may do in one moment.
struct StepLimitTests {
    private let stage: AccessStage

    init() throws {
        stage = try AccessStage(#"{"keys": "/", "admin": ["other"]}"#) {
            $0.stepCount = 10
            $0.globCount = 3
        }
        for number in 0..<50 { try stage.change([("k/\(number)", "1")]) }
    }

    private static let refusal =
        "more than 10 keys in one commit or command, the limit of users without admin rights "
        + "(limits.steps); do it in parts"

    @Test(arguments: [
        "MSET \((0..<80).map { "a\($0) 1" }.joined(separator: " "))",
        "DEL \((0..<80).map { "k/\($0)" }.joined(separator: " "))",
        "MGET \((0..<300).map { "k/\($0)" }.joined(separator: " "))",
        "STATE.DELETE k/",
        "STATE.APPLY 80 \((0..<80).map { "SET a\($0) 1" }.joined(separator: " "))",
    ])
    func `a command of more keys is refused and changes nothing`(command: String) throws {
        let before = stage.server.durable()
        #expect(try stage.connect().ask(command).errorText == "LIMIT \(StepLimitTests.refusal)")
        #expect(stage.server.durable() == before)
    }

    @Test func `a transaction of more keys is refused before it begins`() throws {
        let peer = try stage.connect()
        let before = stage.server.durable()
        try peer.send(["MULTI"] + (0..<11).map { "SET a\($0) 1" } + ["EXEC"])
        #expect(try peer.next(13).last?.errorText == "LIMIT \(StepLimitTests.refusal)")
        try peer.send(["MULTI", "SET a 1", "KEYS *", "EXEC"])
        let error = try peer.next(4).last?.errorText ?? ""
        #expect(
            error.hasPrefix(
                "EXECABORT Transaction undone: command 2, 'keys': LIMIT more than 10 entries"
            )
        )
        #expect(stage.server.durable() == before)
        try peer.send(["MULTI", "SET a 1", "STATE.LIST k/4? KEYS LIMIT 5", "EXEC"])
        #expect(try peer.next(4).last?.elements?.count == 2)
    }

    @Test func `atomic: a transaction with a command of more keys is refused whole`() throws {
        let peer = try stage.connect()
        let before = stage.server.durable()
        let large = "MSET \((0..<80).map { "a\($0) 1" }.joined(separator: " "))"
        try peer.send(["MULTI", "SET a 1", large, "SET b 1", "EXEC"])
        let replies = try peer.next(5)
        #expect(replies[2].errorText == "LIMIT \(StepLimitTests.refusal)")
        #expect(replies[4].errorText?.hasPrefix("EXECABORT") ?? false)
        #expect(stage.server.durable() == before)
    }

    @Test func `what takes fewer keys is done`() throws {
        let peer = try stage.connect()
        #expect(try peer.ask("STATE.DELETE k/1?")["count"] == .integer(10))
    }

    @Test func `globs of one user have a limit over all connections, and are given back`() throws {
        let (first, second) = try (stage.connect(), stage.connect())
        let uid = geteuid()
        #expect(try first.ask("STATE.WATCH a* b* k/")["watch"] == .integer(1))
        #expect(try second.ask("PSUBSCRIBE c*").elements?.count == 3)
        let refusal =
            "LIMIT uid \(uid) would have 4 globs in watches and subscriptions; the limit is 3 (limits.globs); "
            + "use prefixes that end in /, which do not count"
        #expect(try first.ask("STATE.WATCH d*").errorText == refusal)
        #expect(try second.ask("PSUBSCRIBE d*").errorText == refusal)
        #expect(try second.ask("PSUBSCRIBE plain").elements?.count == 3)
        #expect(try first.ask("STATE.UNWATCH 1").shown == "+OK")
        #expect(try first.ask("STATE.WATCH d* e*")["watch"] == .integer(2))
        first.socket.end()
        try stage.server.waitUntil("its globs") {
            let reply = try second.ask("PSUBSCRIBE d*")
            if reply.errorText == nil { _ = try second.ask("PUNSUBSCRIBE d*") }
            return reply.errorText == nil
        }
    }

    @Test func `a scan does not count keys that may not be read`() throws {
        let stage = try AccessStage(#"{"keys": "h/", "read": ["other"]}"#)
        for number in 0..<30 { try stage.change([("h/\(number)", "1"), ("v/\(number)", "1")]) }
        let peer = try stage.connect()
        let first = try #require(try peer.ask("SCAN 0 COUNT 10").elements)
        #expect(first[1].elements?.count == 10)
        #expect(first[0].textValue != "0")
        #expect(try peer.ask("SCAN 0 MATCH h/* COUNT 10").shown == "[\"0\", []]")
    }
}

extension Peer {
    fileprivate func send(_ commands: [String]) throws { try send(commands.map(Peer.words)) }
}
