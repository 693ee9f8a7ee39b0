import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What clients see while storage works: nothing of what it works on.
struct HeldCommitTests {
    private let backing = HeldBacking()
    private let server: ServedKeyspace

    init() throws {
        server = try ServedKeyspace(backing)
        backing.release()
        try #require(try server.connect().ask("SET old 1") == .simple("OK"))
    }

    @Test func `durable before told`() throws {
        let (writer, reader, other) = try (server.connect(), server.connect(), server.connect())
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH /")
        try writer.send("SET k new")
        #expect(backing.held()?.map(\.key) == [Array("k".utf8)])
        try reader.send("GET k")
        #expect(try other.ask("GET old") == .bulk([0x31]))
        #expect(try other.ask("DBSIZE") == .integer(1))
        try server.catchUp()
        #expect(try writer.arrived() == [])
        #expect(try reader.arrived() == [])
        #expect(try watcher.arrived() == [])

        backing.release()
        #expect(try writer.next() == .simple("OK"))
        // The event left before the reply did.
        #expect(
            try watcher.arrived().map(\.shown)
                == [#"push["state.change", 1, 2, [["k", "new"]]]"#]
        )
        #expect(try reader.next() == .bulk(Array("new".utf8)))
        #expect(try other.ask("DBSIZE") == .integer(2))
    }

    @Test func `a connection's own change is pushed to it before its reply`() throws {
        let peer = try server.connect(3)
        _ = try peer.ask("STATE.WATCH a b")
        try peer.send("SET a 1", "PING", "STATE.SET b 2", "GET a")
        #expect(backing.held() != nil)
        try server.catchUp()
        #expect(try peer.arrived() == [])
        backing.open()
        let told = try peer.next(6).map(\.shown)
        let place = { (text: String) in told.firstIndex(of: text) ?? -1 }
        #expect(place(#"push["state.change", 1, 2, [["a", "1"]]]"#) == 0)
        #expect(place("+OK") < place("+PONG"))
        let event = place(#"push["state.change", 1, 3, [["b", "2"]]]"#)
        #expect(event > 0)
        #expect(event < place(#"{"revision": 3, "durability": "synced"}"#))
        #expect(told.last == #""1""#)
    }

    @Test func `reads do not wait for the disk, unless they look at what is in flight`() throws {
        let writer = try server.connect()
        try writer.send("SET k 1")
        #expect(backing.held() != nil)
        let free = try server.connect(3)
        try free.expect(
            """
            > GET old
            > EXISTS old other
            > STRLEN old
            > MGET old other
            > DBSIZE
            > SET old 2 NX GET
            > STATE.SET old 2 IFREV 7
            > PING
            "1"
            1
            1
            ["1", (nil)]
            1
            "1"
            -CONFLICT key 'old' is at revision 1
            +PONG
            """
        )
        let status = try free.ask("STATE.STATUS")
        #expect(status["keys"] == .integer(1))
        #expect(status["revision"] == .integer(1))
        #expect(status["uncommitted"] == .integer(2))
    }

    @Test(arguments: [
        "GET k", "MGET old k", "EXISTS k", "STRLEN k", "TYPE k", "STATE.GET k", "SET k 2 NX",
        "SET gone 2 XX", "STATE.SET k 2 IFREV 0", "STATE.SET k 2 IFVAL 7",
        "STATE.APPLY 1 CHECK k 9", "MSETNX k 2 l 2", "KEYS *", "SCAN 0", "STATE.LIST /",
        "STATE.LIST old", "STATE.LIST / COUNT", "STATE.DELETE nothing DRYRUN",
        "STATE.DELETE nothing", "DEL gone",
    ])
    func `what looks at a commit in flight is answered after it`(command: String) throws {
        let writer = try server.connect()
        backing.release()
        try #require(try writer.ask("SET gone 1") == .simple("OK"))
        try writer.send("MULTI", "SET k 1", "DEL gone", "EXEC")
        #expect(backing.held() != nil)
        let reader = try server.connect(3)
        try reader.send(command, "PING")
        try server.catchUp()
        #expect(try reader.arrived() == [])
        backing.release()
        let answers = try reader.next(2)
        #expect(answers[1] == .simple("PONG"))
        #expect(backing.attemptCount == 3, "nothing of it was a change")
    }

    @Test func `EXEC's null waits for the commit that it is about`() throws {
        let (writer, other) = try (server.connect(), server.connect())
        _ = try other.ask("WATCH k")
        try writer.send("SET k 1")
        #expect(backing.held() != nil)
        try other.send("MULTI", "SET old 9", "EXEC")
        #expect(try other.next(2).map(\.shown) == ["+OK", "+QUEUED"])
        try server.catchUp()
        #expect(try other.arrived() == [])
        backing.release()
        #expect(try other.next() == .null)
        #expect(try other.ask("GET old") == .bulk([0x31]))
    }

    @Test func `no push of a watch comes before the reply that tells its number`() throws {
        let (writer, watcher) = try (server.connect(), server.connect(3))
        try watcher.send("SET a 1", "STATE.WATCH / SNAPSHOT")
        #expect(backing.held() != nil)
        try writer.send("SET b 1")
        try server.catchUp()
        #expect(try watcher.arrived() == [])
        backing.open()
        #expect(try watcher.next() == .simple("OK"))
        let reply = try watcher.next()
        #expect(reply["watch"] == .integer(1))
        // The snapshot is of what was durable when it was made, and the commit of b comes in it or after it.
        var keys: Set<String> = []
        try server.waitUntil("both keys") {
            for push in try watcher.arrived() {
                for row in push.elements?[3...].first?.elements ?? [] {
                    keys.insert(row.elements?[0].textValue ?? "")
                }
            }
            return keys.isSuperset(of: ["a", "b"])
        }
    }

    @Test func `what was sent before UNWATCH, RESET or HELLO 2 is told before the watch ends`()
        throws
    {
        for end in ["STATE.UNWATCH 1", "RESET", "HELLO 2"] {
            let peer = try server.connect(3)
            _ = try peer.ask("STATE.WATCH k")
            try peer.send("SET k \(end.utf8.count)", end)
            backing.release()
            #expect(try peer.next().elements?.first?.textValue == "state.change", "\(end)")
            #expect(try peer.next() == .simple("OK"))
            #expect(try peer.next().errorText == nil)
        }
    }
}
