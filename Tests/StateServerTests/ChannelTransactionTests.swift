import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Channels inside MULTI, and beside replies that storage holds.
struct ChannelTransactionTests {
    private let backing = HeldBacking(isHeld: false)
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(backing) }

    @Test func `MULTI takes subscriptions and messages as any command`() throws {
        let other = try server.connect()
        _ = try other.ask("SUBSCRIBE m")
        try server.connect().expect(
            """
            > MULTI
            > PUBLISH m 1
            > SUBSCRIBE m
            > PUBLISH m 2
            > PING
            > EXEC
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            [1, ["subscribe", "m", 1], 2, ["pong", ""]]
            ["message", "m", "2"]
            > RESET
            +RESET
            > MULTI
            > SUBSCRIBE m
            > PUBLISH m 3
            > UNSUBSCRIBE m
            > EXEC
            > GET k
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            [["subscribe", "m", 1], 2, ["unsubscribe", "m", 0]]
            (nil)
            """
        )
        #expect(
            try other.next(3).map(\.shown) == [
                #"["message", "m", "1"]"#, #"["message", "m", "2"]"#, #"["message", "m", "3"]"#,
            ]
        )
    }

    @Test func `a transaction that is undone sends nothing and subscribes to nothing`() throws {
        let (peer, other) = try (server.connect(3), server.connect())
        try other.send("SUBSCRIBE m n", "PSUBSCRIBE __key*")
        _ = try other.next(3)
        _ = try peer.ask("SUBSCRIBE kept __keyspace@0__:k")
        _ = try peer.next()
        _ = try peer.ask("SET k x")
        _ = try (peer.next(), other.next(2))
        try peer.send(
            "MULTI",
            "PUBLISH m 1",
            "SUBSCRIBE m",
            "PSUBSCRIBE *",
            "UNSUBSCRIBE",
            "SET k y",
            "INCR k",
            "EXEC"
        )
        let aborted = try #require(try peer.next(8).last?.errorText)
        #expect(aborted.hasPrefix("EXECABORT Transaction undone: command 6, 'incr'"))
        try other.expect(
            """
            > PING
            ["pong", ""]
            """
        )
        try server.connect().expect(
            """
            > PUBSUB NUMSUB m kept __keyspace@0__:k
            > PUBSUB NUMPAT
            > PUBLISH kept 1
            > SET k z
            ["m", 1, "kept", 1, "__keyspace@0__:k", 1]
            1
            1
            +OK
            """
        )
        #expect(
            try peer.next(2).map(\.shown) == [
                #"push["message", "kept", "1"]"#, #"push["message", "__keyspace@0__:k", "set"]"#,
            ]
        )
    }

    @Test func `a message goes at once, whatever the disk does`() throws {
        let (peer, other) = try (server.connect(), server.connect())
        _ = try other.ask("SUBSCRIBE c")
        backing.hold()
        try peer.send("SET k 1", "PUBLISH c now")
        #expect(backing.held() != nil)
        #expect(try other.next().shown == #"["message", "c", "now"]"#)
        #expect(try peer.arrived() == [])
        backing.open()
        #expect(try peer.next(2).map(\.shown) == ["+OK", "1"])
    }

    @Test(arguments: [2, 3])
    func `no message comes before the reply that tells of the subscription`(version: Int) throws {
        let (peer, other, last) = try (
            server.connect(version), server.connect(version), server.connect()
        )
        backing.hold()
        try peer.send("SET k 1", "SUBSCRIBE c")
        #expect(backing.held() != nil)
        try other.send("MULTI", "SUBSCRIBE c", "SET k 2", "EXEC")
        #expect(try other.next(3).map(\.shown) == ["+OK", "+QUEUED", "+QUEUED"])
        // The first waits with its subscription, the second has it and may not be told.
        #expect(try last.ask("PUBLISH c early") == .integer(1))
        try server.catchUp()
        #expect(try peer.arrived() + other.arrived() == [])
        backing.open()
        let mark = version == 3 ? "push" : ""
        #expect(try peer.next(2).map(\.shown) == ["+OK", #"\#(mark)["subscribe", "c", 1]"#])
        #expect(
            try other.next(2).map(\.shown) == [
                #"[\#(mark)["subscribe", "c", 1], +OK]"#, #"\#(mark)["message", "c", "early"]"#,
            ]
        )
        #expect(try last.ask("PUBLISH c late") == .integer(2))
        for peer in [peer, other] {
            #expect(try peer.next().shown == #"\#(mark)["message", "c", "late"]"#)
        }
    }
}
