import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// SUBSCRIBE, PUBLISH and their relatives, as clients of Redis know them.
struct ChannelTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace() }

    private static let restriction =
        "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

    @Test func `RESP2 has arrays, and few commands for who subscribes`() throws {
        try server.connect().expect(
            """
            > UNSUBSCRIBE
            > PUNSUBSCRIBE
            ["unsubscribe", (nil), 0]
            ["punsubscribe", (nil), 0]
            > UNSUBSCRIBE x y
            ["unsubscribe", "x", 0]
            ["unsubscribe", "y", 0]
            > SUBSCRIBE a b a
            ["subscribe", "a", 1]
            ["subscribe", "b", 2]
            ["subscribe", "a", 2]
            > PSUBSCRIBE a* ?
            ["psubscribe", "a*", 3]
            ["psubscribe", "?", 4]
            > PING
            > PING hi
            ["pong", ""]
            ["pong", "hi"]
            > GET x
            -ERR Can't execute 'get': \(Self.restriction)
            > config GET save
            -ERR Can't execute 'config|get': \(Self.restriction)
            > MULTI
            -ERR Can't execute 'multi': \(Self.restriction)
            > HELLO 3
            -ERR Can't execute 'hello': \(Self.restriction)
            > PUBLISH a 1
            -ERR Can't execute 'publish': \(Self.restriction)
            > SUBSCRIBE
            -ERR wrong number of arguments for 'subscribe' command
            > FOO
            -ERR unknown command 'FOO', with args beginning with: 
            > UNSUBSCRIBE a
            > PUNSUBSCRIBE
            > UNSUBSCRIBE
            > GET x
            ["unsubscribe", "a", 3]
            ["punsubscribe", "?", 2]
            ["punsubscribe", "a*", 1]
            ["unsubscribe", "b", 0]
            (nil)
            """
        )
    }

    @Test func `RESP3 has pushes, and every command`() throws {
        try server.connect(3).expect(
            """
            > UNSUBSCRIBE
            > SUBSCRIBE a ""
            > PSUBSCRIBE b*
            push["unsubscribe", (nil), 0]
            push["subscribe", "a", 1]
            push["subscribe", "", 2]
            push["psubscribe", "b*", 3]
            > PING
            > PING hi
            > SET k 1
            > MULTI
            > GET k
            > EXEC
            +PONG
            "hi"
            +OK
            +OK
            +QUEUED
            ["1"]
            > PUNSUBSCRIBE
            > UNSUBSCRIBE
            push["punsubscribe", "b*", 2]
            push["unsubscribe", "", 1]
            push["unsubscribe", "a", 0]
            """
        )
    }

    @Test func `a message reaches each subscription that matches, and PUBLISH counts them`() throws
    {
        let (old, new, publisher) = try (server.connect(), server.connect(3), server.connect())
        try old.send("SUBSCRIBE news", "PSUBSCRIBE n* news [mn]ews x*")
        try new.send("PSUBSCRIBE *", "SUBSCRIBE news newsletter")
        _ = try (old.next(5), new.next(3))
        try publisher.expect(
            """
            > PUBLISH news 1
            > PUBLISH newsletter ""
            > PUBLISH other 2
            > PUBLISH new 3
            6
            3
            1
            2
            """
        )
        #expect(
            try old.next(6).map(\.shown) == [
                #"["message", "news", "1"]"#, #"["pmessage", "news", "news", "1"]"#,
                #"["pmessage", "[mn]ews", "news", "1"]"#, #"["pmessage", "n*", "news", "1"]"#,
                #"["pmessage", "n*", "newsletter", ""]"#, #"["pmessage", "n*", "new", "3"]"#,
            ]
        )
        #expect(
            try new.next(6).map(\.shown) == [
                #"push["message", "news", "1"]"#, #"push["pmessage", "*", "news", "1"]"#,
                #"push["message", "newsletter", ""]"#, #"push["pmessage", "*", "newsletter", ""]"#,
                #"push["pmessage", "*", "other", "2"]"#, #"push["pmessage", "*", "new", "3"]"#,
            ]
        )
        try server.catchUp()
        #expect(try old.arrived() + new.arrived() == [])
    }

    @Test func `what a publisher sends arrives in its order, any bytes whole`() throws {
        let (subscriber, publisher) = try (server.connect(), server.connect(3))
        _ = try subscriber.ask("SUBSCRIBE c")
        var random = SplitMix(seed: Seed.base)
        let messages = (0..<2_000).map { _ in random.bytes(Int(random.next() % 40)) }
        try publisher.send(
            messages.map { [Array("PUBLISH".utf8), Array("c".utf8), $0] }
        )
        for message in messages {
            try #require(try subscriber.next().elements?[2] == .bulk(message))
            try #require(try publisher.next() == .integer(1))
        }
    }

    @Test func `PUBSUB tells of channels, subscribers and patterns`() throws {
        let (first, second, asking) = try (server.connect(), server.connect(3), server.connect(3))
        try first.send("SUBSCRIBE a b", "PSUBSCRIBE p* q")
        try second.send("SUBSCRIBE a", "PSUBSCRIBE p*")
        _ = try (first.next(4), second.next(2))
        try asking.expect(
            """
            > PUBSUB CHANNELS A*
            > PUBSUB CHANNELS [a]
            > PUBSUB NUMSUB
            > PUBSUB NUMSUB a b a c p*
            > PUBSUB numpat
            []
            ["a"]
            []
            ["a", 2, "b", 1, "a", 2, "c", 0, "p*", 0]
            2
            > PUBSUB CHANNELS a b
            -ERR wrong number of arguments for 'pubsub|channels' command
            > PUBSUB NUMPAT x
            -ERR wrong number of arguments for 'pubsub|numpat' command
            > PUBSUB
            -ERR wrong number of arguments for 'pubsub' command
            > PUBSUB FOO
            -ERR unknown subcommand 'FOO'. Try PUBSUB with CHANNELS [glob], NUMSUB [name ...], NUMPAT, \
            SHARDCHANNELS [glob] or SHARDNUMSUB [name ...]
            """
        )
        let names = try #require(try asking.ask("PUBSUB CHANNELS").elements)
        #expect(names.compactMap(\.textValue).sorted() == ["a", "b"])
        let information = try #require(try asking.ask("INFO stats").textValue)
        #expect(information.contains("\r\npubsub_channels:2\r\npubsub_patterns:2\r\n"))
        let lines = try #require(try asking.ask("CLIENT LIST").textValue?.split(separator: "\n"))
        #expect(lines[0].contains(" sub=2 psub=2 ") && lines[1].contains(" sub=1 psub=1 "))
        try asking.expect(
            """
            > COMMAND INFO publish
            [["publish", 3, [+pubsub], 0, 0, 0, ["@read", "@pubsub"], [], [], []]]
            """
        )
    }

    @Test(arguments: ["RESET", "QUIT", "an end"])
    func `subscriptions end with their connection`(end: String) throws {
        let (peer, other) = try (server.connect(), server.connect())
        try peer.send("SUBSCRIBE a __keyspace@0__:k", "PSUBSCRIBE a* [x] __key*")
        _ = try peer.next(5)
        #expect(try other.ask("PUBLISH a 1") == .integer(2))
        _ = try peer.next(2)
        switch end {
        case "RESET": try peer.expect("> RESET\n> GET a\n+RESET\n(nil)")
        case "QUIT": try peer.expect("> QUIT\n+OK\n(end)")
        default:
            peer.socket.end()
            try server.catchUp()
            try server.waitForClients(1)
        }
        try other.expect(
            """
            > PUBLISH a 1
            > PUBSUB CHANNELS
            > PUBSUB NUMPAT
            0
            []
            0
            """
        )
        #expect(server.keyspace.withCore { $0.hub.count } == 0)
    }

    @Test func `HELLO 2 keeps subscriptions, and restricts their connection`() throws {
        let (peer, other) = try (server.connect(3), server.connect())
        _ = try peer.ask("SUBSCRIBE q")
        _ = try other.ask("PUBLISH q 1")
        #expect(try peer.next().shown == #"push["message", "q", "1"]"#)
        #expect(try peer.ask("HELLO 2").elements?.count == 14)
        _ = try other.ask("PUBLISH q 2")
        try peer.expect(
            """
            ["message", "q", "2"]
            > GET x
            -ERR Can't execute 'get': \(Self.restriction)
            > UNSUBSCRIBE
            ["unsubscribe", "q", 0]
            > GET x
            (nil)
            """
        )
    }

    @Test func `a connection gets its own message behind the reply`() throws {
        try server.connect(3).expect(
            """
            > SUBSCRIBE q
            > PUBLISH q 1
            > PING
            push["subscribe", "q", 1]
            1
            push["message", "q", "1"]
            +PONG
            """
        )
    }

    @Test(arguments: Seed.each(4))
    func `a message reaches exactly the subscriptions that match it`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let peer = try server.connect(3)
        var names: Set<String> = []
        var patterns: Set<String> = []
        for _ in 0..<Extent.rounds(300) {
            let text = RandomName.glob(&random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<2:
                names.insert(text)
                _ = try peer.ask("SUBSCRIBE \"\(text)\"")
            case 2..<5:
                patterns.insert(text)
                _ = try peer.ask("PSUBSCRIBE \"\(text)\"")
            case 5:
                names.remove(text)
                _ = try peer.ask("UNSUBSCRIBE \"\(text)\"")
            case 6:
                patterns.remove(text)
                _ = try peer.ask("PUNSUBSCRIBE \"\(text)\"")
            default:
                let name = RandomName.plain(&random)
                var expected = patterns.filter { RandomName.matches($0, name) }
                    .map { #"push["pmessage", "\#($0)", "\#(name)", "m"]"# }
                if names.contains(name) { expected.append(#"push["message", "\#(name)", "m"]"#) }
                let count = try peer.ask("PUBLISH \"\(name)\" m")
                try #require(count == .integer(Int64(expected.count)), "\(name) of \(patterns)")
                let told = try peer.next(expected.count).map(\.shown)
                try #require(told.sorted() == expected.sorted())
            }
        }
        try server.connect().expect("> PUBSUB NUMPAT\n\(patterns.count)")
    }

    @Test func `CONFIG says that keyspace notifications are on, and they stay so`() throws {
        let others =
            "clients cannot change the configuration; edit the configuration file and use STATE.RELOAD"
        try server.connect().expect(
            """
            > CONFIG GET notify-*
            > CONFIG SET notify-keyspace-events KEA
            > CONFIG SET NOTIFY-keyspace-events ""
            > CONFIG GET notify-keyspace-events
            ["notify-keyspace-events", "AKE"]
            +OK
            +OK
            ["notify-keyspace-events", "AKE"]
            > CONFIG SET notify-keyspace-events Kq
            -ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid \
            event class character. Use 'Ag$lshzxeKEtmdn'.
            > CONFIG SET notify-keyspace-events K maxclients 5
            -ERR CONFIG SET 'maxclients': \(others)
            > CONFIG SET save
            -ERR wrong number of arguments for 'config|set' command
            > CONFIG SET a b c
            -ERR syntax error
            """
        )
    }
}

/// Names and globs of few letters, so that they often meet.
enum RandomName {
    static func plain(_ random: inout SplitMix) -> String {
        words(["a", "b", "/"], Int.random(in: 1...4, using: &random), &random)
    }

    static func glob(_ random: inout SplitMix) -> String {
        let pieces = ["a", "b", "/", "a", "b", "*", "?", "[ab]", "[^a]", "a*"]
        let text = words(pieces, Int.random(in: 1...3, using: &random), &random)
        return random.chance(30) ? text + "*" : text
    }

    private static func words(_ words: [String], _ count: Int, _ random: inout SplitMix) -> String {
        (0..<count).map { _ in words[Int.random(in: 0..<words.count, using: &random)] }.joined()
    }

    static func matches(_ glob: String, _ name: String) -> Bool {
        var (glob, name) = (glob, name)
        return glob.withUTF8 { glob in
            name.withUTF8 { Pattern(redisGlob: Bytes(glob)).matches(Bytes($0)) }
        }
    }
}
