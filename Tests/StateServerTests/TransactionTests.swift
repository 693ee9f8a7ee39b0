import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// MULTI and the commands of many keys: one commit, all or nothing.
struct TransactionTests {
    private let backing = HeldBacking(isHeld: false)
    private let server: ServedKeyspace
    private let peer: Peer

    init() throws {
        server = try ServedKeyspace(backing)
        peer = try server.connect(3)
    }

    /// The keys of each commit.
    private var commits: [[String]] {
        var commits: [Int64: [String]] = [:]
        for change in backing.kept {
            commits[change.revision, default: []].append(
                String(decoding: change.key, as: UTF8.self)
            )
        }
        return commits.sorted { $0.key < $1.key }.map(\.value)
    }

    @Test func `EXEC is one commit, and its commands see each other's changes`() throws {
        try peer.expect(
            """
            > MULTI
            > SET a 1
            > INCR a
            > GET a
            > APPEND b x
            > DEL a
            > STATE.SET c 3
            > STATE.GET missing
            > EXEC
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            [+OK, 2, "2", 1, 1, {"revision": 1, "durability": "synced"}, (nil)]
            """
        )
        #expect(commits == [["b", "c"]])
        #expect(server.durable() == ["b": "x", "c": "3"])
    }

    @Test func `an empty transaction and one that only reads are no commit`() throws {
        try peer.expect(
            """
            > MULTI
            > EXEC
            > MULTI
            > GET a
            > PING x
            > EXEC
            +OK
            []
            +OK
            +QUEUED
            +QUEUED
            [(nil), "x"]
            """
        )
        #expect(commits == [])
    }

    @Test(arguments: [
        ("FROBNICATE", "-ERR unknown command 'FROBNICATE', with args beginning with: "),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("SET a/ 1", "-ERR key 'a/' ends in '/', which is how a prefix is written, not a key"),
        ("SET a 1 FOO", "-ERR syntax error"),
        ("STATE.WATCH /", "-ERR 'state.watch' is not allowed in a transaction"),
    ])
    func `an error while queuing is EXECABORT`(command: String, refusal: String) throws {
        try peer.expect(
            """
            > MULTI
            > SET a 1
            > \(command)
            > SET b 1
            > EXEC
            +OK
            +QUEUED
            \(refusal)
            +QUEUED
            -EXECABORT Transaction discarded because of previous errors.
            > MULTI
            > EXISTS a b
            > EXEC
            +OK
            +QUEUED
            [0]
            """
        )
    }

    @Test func `an argument over the limit while queuing is EXECABORT`() throws {
        let server = try ServedKeyspace { $0.limits.valueByteCount = 2_000 }
        try server.connect().expect(
            """
            > MULTI
            > SET a \(String(repeating: "1", count: 2_001))
            > EXEC
            +OK
            -TOOBIG an argument has 2001 bytes; the limit is 2000
            -EXECABORT Transaction discarded because of previous errors.
            """
        )
    }

    @Test func `keys may be longer than values`() throws {
        let server = try ServedKeyspace { $0.limits.valueByteCount = 3 }
        try server.connect().expect(
            """
            > SET longer abc
            > SET longer abcd
            > GET longer
            +OK
            -TOOBIG the value of key 'longer' has 4 bytes; the limit is 3
            "abc"
            """
        )
    }

    @Test(arguments: [
        ("INCR text", "ERR value is not an integer or out of range"),
        ("STATE.SET text x IFREV 9", "CONFLICT key 'text' is at revision 2"),
        ("STATE.APPLY 2 SET z 1 CHECK a 0", "CONFLICT key 'a' is at revision 2"),
    ])
    func `an error while running undoes everything and names the command`(
        command: String,
        error: String
    ) throws {
        try peer.expect(
            """
            > SET text x
            +OK
            > MULTI
            > SET a 1
            > DEL text
            > SET text y
            > \(command)
            > SET b 1
            > EXEC
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            -EXECABORT Transaction undone: command 4, '\(command.prefix { $0 != " " }.lowercased())': \
            \(error)
            > MGET a b z text
            [(nil), (nil), (nil), "x"]
            """
        )
        #expect(commits == [["text"]])
    }

    @Test func `WATCH makes EXEC depend on keys being unchanged`() throws {
        let other = try server.connect()
        try peer.expect("> WATCH a b\n+OK")
        try other.expect("> SET b 1\n+OK")
        try peer.expect(
            """
            > MULTI
            > SET a mine
            > EXEC
            > EXISTS a
            +OK
            +QUEUED
            (nil)
            0
            > WATCH a b
            > GET b
            > MULTI
            > SET a mine
            > EXEC
            +OK
            "1"
            +OK
            +QUEUED
            [+OK]
            """
        )
        // Watched keys are forgotten by EXEC, UNWATCH and DISCARD.
        for forget in ["UNWATCH", "MULTI\n> DISCARD"] {
            _ = try peer.ask("WATCH a")
            _ = try other.ask("APPEND a !")
            let oks = forget == "UNWATCH" ? "+OK" : "+OK\n+OK"
            try peer.expect("> \(forget)\n\(oks)\n> MULTI\n> GET b\n> EXEC\n+OK\n+QUEUED\n[\"1\"]")
        }
    }

    @Test func `a watched key that was deleted, or made, has changed`() throws {
        let other = try server.connect()
        _ = try other.ask("SET a 1")
        for change in ["DEL a", "SET a 1"] {
            _ = try peer.ask("WATCH a")
            _ = try other.ask(change)
            try peer.expect("> MULTI\n> SET b 1\n> EXEC\n+OK\n+QUEUED\n(nil)")
        }
    }

    @Test func `a watched key that was absent, set and deleted again has changed`() throws {
        let other = try server.connect()
        for changes in [["SET a 1", "DEL a"], ["SET b 1"], ["SET a 1", "GETDEL a"]] {
            _ = try other.ask("DEL a b")
            _ = try peer.ask("WATCH a b")
            for change in changes { _ = try other.ask(change) }
            try peer.expect("> MULTI\n> SET c 1\n> EXEC\n+OK\n+QUEUED\n(nil)")
        }
        // One's own change counts, too; what others do to other keys does not.
        _ = try peer.ask("DEL a")
        _ = try peer.ask("WATCH a")
        for command in ["SET a 1", "DEL a"] { _ = try peer.ask(command) }
        try peer.expect("> MULTI\n> SET c 1\n> EXEC\n+OK\n+QUEUED\n(nil)")
        _ = try peer.ask("WATCH a")
        for command in ["SET d 1", "DEL d"] { _ = try other.ask(command) }
        try peer.expect("> MULTI\n> SET c 1\n> EXEC\n+OK\n+QUEUED\n[+OK]")
        // Nothing is left of a watch that has ended.
        for forget in ["UNWATCH", "RESET"] {
            _ = try peer.ask("WATCH a")
            _ = try peer.ask(forget)
            for command in ["SET a 1", "DEL a"] { _ = try other.ask(command) }
            try peer.expect("> MULTI\n> SET c 1\n> EXEC\n+OK\n+QUEUED\n[+OK]")
        }
    }

    @Test func `CLIENT, AUTH and HELLO are queued inside MULTI, and run at EXEC`() throws {
        try peer.expect(
            """
            > MULTI
            > CLIENT SETNAME mixer
            > CLIENT GETNAME
            > AUTH default x
            > SET a 1
            > EXEC
            > CLIENT GETNAME
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            [+OK, "mixer", +OK, +OK]
            "mixer"
            """
        )
        _ = try peer.ask("MULTI")
        _ = try peer.ask("HELLO 3")
        _ = try peer.ask("SET a 2")
        let reply = try peer.ask("EXEC").elements
        #expect(reply?.first?["proto"] == .integer(3) && reply?.last == .simple("OK"))
        #expect(try peer.ask("STATE.GET a")["by"]?.textValue?.hasSuffix(":mixer") == true)
    }

    @Test func `DISCARD and RESET drop what was queued`() throws {
        try peer.expect(
            """
            > MULTI
            > SET a 1
            > DISCARD
            > EXEC
            > DISCARD
            +OK
            +QUEUED
            +OK
            -ERR EXEC without MULTI
            -ERR DISCARD without MULTI
            > MULTI
            > SET a 1
            > RESET
            > EXEC
            > EXISTS a
            +OK
            +QUEUED
            +RESET
            -ERR EXEC without MULTI
            0
            """
        )
    }

    @Test func `MULTI and WATCH inside MULTI are refused and spoil nothing`() throws {
        try peer.expect(
            """
            > MULTI
            > MULTI
            > WATCH a
            > SET a 1
            > EXEC
            +OK
            -ERR MULTI calls can not be nested
            -ERR WATCH inside MULTI is not allowed
            +QUEUED
            [+OK]
            """
        )
    }

    @Test func `a transaction beyond its limits is refused whole`() throws {
        let server = try ServedKeyspace {
            $0.limits.transactionByteCount = 1_000
            $0.limits.transactionChangeCount = 3
        }
        let value = String(repeating: "v", count: 600)
        try server.connect().expect(
            """
            > MULTI
            > SET a \(value)
            > SET b \(value)
            > EXEC
            +OK
            +QUEUED
            -TOOBIG a transaction can have at most 1000 bytes
            -EXECABORT Transaction discarded because of previous errors.
            > MSET a \(value) b \(value)
            > MSET a 1 b 1 c 1 d 1
            > STATE.APPLY 2 SET a \(value) SET b \(value)
            -TOOBIG a transaction can have at most 1000 bytes of keys and values
            -TOOBIG a transaction can have at most 3 changes
            -TOOBIG a transaction can have at most 1000 bytes of keys and values
            > MSET a 1 b 1 c 1
            > SET d 1
            > STATE.DELETE /
            +OK
            +OK
            -TOOBIG a transaction can have at most 3 changes
            > DBSIZE
            4
            """
        )
    }

    @Test func `MSET, MSETNX, DEL, STATE.APPLY and STATE.DELETE are one commit each`() throws {
        try peer.expect(
            """
            > MSET a 1 b 1 a 2
            > MSETNX c 1 d 1
            > MSETNX e 1 a 1
            > STATE.APPLY 4 SET a 3 IFREV 1 DELETE b CHECK c 2 SET e 1 IFREV 0
            > STATE.APPLY 2 SET a 4 CHECK c 3
            > STATE.DELETE a c
            > DEL d e f
            +OK
            1
            0
            {"revision": 3, "count": 3}
            -CONFLICT key 'c' is at revision 2
            {"revision": 4, "count": 2}
            2
            """
        )
        #expect(commits == [["a", "b"], ["c", "d"], ["a", "b", "e"], ["a", "c"], ["d", "e"]])
        #expect(server.durable() == [:])
    }

    @Test func `atomic: a watcher is told of a transaction as one commit`() throws {
        _ = try peer.ask("STATE.WATCH /")
        let other = try server.connect()
        try other.send("MULTI", "MSET a 1 b 1", "DEL a", "SET c 1", "EXEC", "MSET b 2 x 1")
        _ = try other.next(6)
        #expect(
            try peer.next(2).map(\.shown) == [
                #"push["state.change", 1, 1, [["b", "1"], ["c", "1"]]]"#,
                #"push["state.change", 1, 2, [["b", "2"], ["x", "1"]]]"#,
            ]
        )
    }
}
