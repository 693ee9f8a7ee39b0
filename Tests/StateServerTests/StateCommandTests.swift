import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Our own verbs, in both versions of the protocol.
struct StateCommandTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(HeldBacking(isHeld: false)) }

    @Test func `STATE.GET tells what is known of an entry`() throws {
        let peer = try server.connect(3)
        let before = time(nil)
        try peer.expect(
            """
            > STATE.GET k
            > SET other 1
            > STATE.SET k a
            > SET k b
            > STATE.GET k
            (nil)
            +OK
            {"revision": 2, "durability": "synced"}
            +OK
            {"value": "b", "revision": 3, "created": 2, "version": 2, "time": …, "owner": …, "by": …, \
            "expires": (nil), "durability": "synced"}
            """
        )
        let entry = try peer.ask("STATE.GET k")
        #expect(entry["owner"] == .integer(Int64(geteuid())))
        let milliseconds = try #require(entry["time"]?.integerValue)
        // time(2) is a few milliseconds late.
        #expect((Int64(before) * 1_000...LocalKeyspace.now()).contains(milliseconds))
        let by = try #require(entry["by"]?.textValue)
        #expect(by.hasPrefix("\(geteuid()):\(getegid()):\(getpid()):"))
        #expect(by.hasSuffix(":"))
    }

    @Test func `a pipeline is answered as its commands are one by one`() throws {
        var random = SplitMix(seed: Seed.base)
        let names = [
            "a", "ab", "abc", "b/", "b/1", "b/2", String(repeating: "k", count: 300), "none",
        ]
        var commands: [[String]] = []
        for number in 0..<2_000 {
            let name = names[Int.random(in: names.indices, using: &random)]
            let other = names[Int.random(in: names.indices, using: &random)]
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3: commands.append(["SET", name, "\(number)"])
            case 4...7: commands.append(["GET", name])
            case 8: commands.append(["DEL", name, other])
            case 9: commands.append(["EXISTS", name])
            case 10: commands.append(["PING"])
            default: commands.append(number % 10 == 0 ? ["FLUSHALL"] : ["APPEND", name, "x"])
            }
        }
        let bytes = commands.map { $0.map { Array($0.utf8) } }
        let single = try server.connect()
        let expected = try bytes.map { try single.ask($0) }
        #expect(try single.ask("FLUSHALL") == .simple("OK"))
        let peer = try server.connect()
        try peer.send(bytes)
        #expect(try peer.next(bytes.count) == expected)
    }

    @Test func `by tells the name that the client has given itself by then`() throws {
        let peer = try server.connect()
        for (command, name) in [
            ("CLIENT SETNAME mixer", "mixer"), ("HELLO 3 SETNAME other", "other"), ("RESET", ""),
        ] {
            _ = try peer.ask(command)
            _ = try peer.ask("SET k 1")
            let by = try peer.ask("STATE.GET k")["by"]?.textValue
            #expect(by?.hasSuffix(":\(name)") == true, "\(by ?? "")")
        }
    }

    @Test func `RESP2 has no maps: the same as flat arrays`() throws {
        let peer = try server.connect()
        try peer.expect(
            """
            > STATE.SET k 1
            > STATE.APPLY 1 SET k 2
            > STATE.DELETE k
            ["revision", 1, "durability", "synced"]
            ["revision", 2, "count", 1]
            ["revision", 3, "count", 1]
            """
        )
        _ = try peer.ask("SET k 4")
        #expect(try peer.ask("STATE.GET k").elements?.count == 18)
        #expect(try peer.ask("STATE.GET k")["version"] == .integer(1))
        #expect(try peer.ask("STATE.STATUS")["revision"] == .integer(4))
    }

    @Test func `conditions of STATE.SET`() throws {
        try server.connect(3).expect(
            """
            > STATE.SET k 1 XX
            > STATE.SET k 1 IFREV 1
            > STATE.SET k 1 IFVAL 1
            > STATE.SET k 1 NX IFREV 0
            > STATE.SET k 2 NX
            > STATE.SET k 2 IFREV 0
            > STATE.SET k 2 IFREV 1 IFVAL 2
            > STATE.SET k 2 IFREV 1 IFVAL 1
            > STATE.SET k "" xx ifrev 2
            > STATE.SET k 4 IFVAL ""
            > GET k
            -CONFLICT key 'k' is absent (revision 0)
            -CONFLICT key 'k' is absent (revision 0)
            -CONFLICT key 'k' is absent (revision 0)
            {"revision": 1, "durability": "synced"}
            -CONFLICT key 'k' is at revision 1
            -CONFLICT key 'k' is at revision 1
            -CONFLICT key 'k' is at revision 1
            {"revision": 2, "durability": "synced"}
            {"revision": 3, "durability": "synced"}
            {"revision": 4, "durability": "synced"}
            "4"
            """
        )
    }

    @Test func `STATE.APPLY does all or nothing`() throws {
        try server.connect(3).expect(
            """
            > STATE.APPLY 0
            > STATE.APPLY 3 SET a 1 SET b 1 DELETE missing
            > STATE.APPLY 2 DELETE a IFREV 2 SET c 1
            > STATE.APPLY 3 SET a 2 IFREV 1 CHECK b 1 CHECK missing 0
            > STATE.APPLY 1 CHECK a 2
            > STATE.APPLY 2 SET SET IFREV SET IFREV IFREV IFREV 0
            > MGET a b c SET IFREV
            {"revision": 0, "count": 0}
            {"revision": 1, "count": 2}
            -CONFLICT key 'a' is at revision 1
            {"revision": 2, "count": 1}
            {"revision": 2, "count": 0}
            {"revision": 3, "count": 2}
            ["2", "1", (nil), "IFREV", "IFREV"]
            """
        )
    }

    @Test func `a prefix never takes its siblings, and a glob matches slashes too`() throws {
        try server.connect(3).expect(
            """
            > MSET test/a 1 test/b/c 1 test2/a 1 test 1 other 1
            > STATE.DELETE test/ DRYRUN
            > STATE.LIST test/ KEYS
            > STATE.DELETE test/
            > STATE.LIST / KEYS
            > STATE.DELETE test/
            > MSET x/a/1 1 x/b/1 1 x/b/2 1
            > STATE.DELETE x/*1 other missing
            > STATE.LIST / KEYS
            > STATE.DELETE /
            > STATE.LIST / COUNT
            +OK
            {"revision": 1, "count": 2}
            [["test/a"], ["test/b/c"]]
            {"revision": 2, "count": 2}
            [["other"], ["test"], ["test2/a"]]
            {"revision": 2, "count": 0}
            +OK
            {"revision": 4, "count": 3}
            [["test"], ["test2/a"], ["x/b/2"]]
            {"revision": 5, "count": 3}
            0
            """
        )
    }

    @Test func `STATE.LIST with LONG tells all that is kept`() throws {
        let peer = try server.connect(3)
        _ = try peer.ask("MSET a/1 1 a/2 2 b 3")
        _ = try peer.ask("SET a/1 4")
        let rows = try #require(try peer.ask("STATE.LIST a/ LONG").elements)
        #expect(rows.count == 2)
        let entry = try peer.ask("STATE.GET a/1")
        let names = ["value", "revision", "created", "version", "time", "owner", "by"]
        let kept = [.bulk(Array("a/1".utf8))] + names.compactMap { entry[$0] }
        let home = [Array("sqlite".utf8), []].map { Reply.bulk($0) }
        #expect(rows[0] == .array(kept + home))
        #expect(try peer.ask("STATE.LIST a/ LONG KEYS").errorText?.hasPrefix("ERR syntax") == true)
    }

    @Test func `STATE.LIST lists in key order, in parts and in three forms`() throws {
        try server.connect(3).expect(
            """
            > MSET b 2 a/1 1 a/2 "" c 3
            > STATE.LIST /
            > STATE.LIST a/ LIMIT 1
            > STATE.LIST a/ AFTER a/1
            > STATE.LIST / AFTER a/2 LIMIT 1 KEYS
            > STATE.LIST / KEYS AFTER b
            > STATE.LIST / COUNT
            > STATE.LIST a/ count
            > STATE.LIST / LIMIT 0
            > STATE.LIST / AFTER c
            > STATE.LIST b
            > STATE.LIST missing
            > STATE.LIST a
            > STATE.LIST *2
            > STATE.LIST \\a/1 KEYS
            > STATE.LIST / COUNT LIMIT 3
            +OK
            [["a/1", "1", 1], ["a/2", "", 1], ["b", "2", 1], ["c", "3", 1]]
            [["a/1", "1", 1]]
            [["a/2", "", 1]]
            [["b"]]
            [["c"]]
            4
            2
            []
            []
            [["b", "2", 1]]
            []
            []
            [["a/2", "", 1]]
            [["a/1"]]
            3
            """
        )
    }

    @Test func `a key that reads as an option is written with a backslash`() throws {
        try server.connect(3).expect(
            """
            > MSET DRYRUN 1 SNAPSHOT 1
            > STATE.DELETE \\DRYRUN DRYRUN
            > STATE.DELETE \\DRYRUN
            > STATE.LIST SNAPSHOT KEYS
            > STATE.WATCH \\SNAPSHOT SNAPSHOT
            +OK
            {"revision": 1, "count": 1}
            {"revision": 2, "count": 1}
            [["SNAPSHOT"]]
            {"watch": 1, "revision": 2, "epoch": …}
            push["state.change", 1, 0, [["SNAPSHOT", "1", 1]]]
            push["state.synced", 1, 2]
            """
        )
    }

    @Test(arguments: ["/a", "a//b", "a/b*", "*", "[a", "?"])
    func `a pattern may be anything that could mean a key`(pattern: String) throws {
        #expect(try server.connect().ask("STATE.LIST \(pattern)").elements == [])
    }

    @Test(
        arguments: [
            ([], "a key has at least 1 byte"), ([0xFF], "key '\\xFF' is not UTF-8"),
            ([0x2A, 0x0A], "key '*\\x0A' has a control character"),
            (
                Array("a//".utf8),
                "key 'a//' ends in '/', which is how a prefix is written, not a key"
            ),
        ] as [([UInt8], String)]
    )
    func `a pattern that can mean no key is refused`(pattern: [UInt8], sentence: String) throws {
        let peer = try server.connect(3)
        for verb in ["STATE.LIST", "STATE.DELETE", "STATE.WATCH"] {
            #expect(try peer.ask([Array(verb.utf8), pattern]).errorText == "ERR \(sentence)")
        }
    }

    @Test func `STATE.STATUS tells what is durable, and who is there`() throws {
        let peer = try server.connect(3)
        let other = try server.connect()
        try other.expect("> SET k 12345\n+OK")
        _ = try peer.ask("STATE.WATCH /")
        let status = try peer.ask("STATE.STATUS")
        #expect(status["version"]?.textValue == "0.0.0")
        #expect(status["epoch"]?.textValue == "\(server.keyspace.epoch)")
        #expect(status["pid"] == .integer(Int64(getpid())))
        #expect(status["revision"] == .integer(1))
        #expect(status["keys"] == .integer(1))
        #expect(status["clients"] == .integer(2))
        #expect(status["watches"] == .integer(1))
        #expect(status["uncommitted"] == .integer(0))
    }
}
