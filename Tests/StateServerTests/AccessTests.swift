import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What a rule keeps somebody from, command by command.
struct AccessTests {
    private let stage: AccessStage
    private let me = geteuid()

    init() throws {
        stage = try AccessStage(
            """
            {"keys": "secret/", "read": ["other"], "write": ["other"]},
            {"keys": "own/", "read": ["owner"], "write": ["owner"], "create": ["*"]},
            {"keys": "log/", "read": ["other"]},
            {"keys": "fixed/", "write": ["other"]},
            {"keys": "quiet/", "watch": ["other"]},
            {"keys": "new/", "create": ["other"]},
            {"keys": "ops/", "admin": ["me"], "write": ["other"]}
            """
        )
        let keys = ["secret/k", "own/k", "log/k", "fixed/k", "quiet/k", "new/k", "ops/k", "free"]
        try stage.change(keys.map { ($0, "hidden") })
    }

    @Test(arguments: [
        "GET secret/k", "MGET free secret/k", "EXISTS free secret/k", "TYPE secret/k",
        "STRLEN secret/k", "STATE.GET secret/k", "STATE.GET secret/k AT 2",
        "STATE.HISTORY secret/k",
        "STATE.LIST secret/k", "STATE.LIST secret/k AT 2", "WATCH free secret/k",
        "STATE.WATCH secret/k", "STATE.CHANGES SINCE 0 secret/k", "STATE.HANDLER ATTACH h secret/k",
        "GET secret/absent", "EXISTS secret/absent", "STATE.GET secret/absent",
    ])
    func `what may not be read is refused with the rule, whether or not it is there`(
        command: String
    ) throws {
        let key = command.contains("absent") ? "secret/absent" : "secret/k"
        let expected = "NOPERM key '\(key)': uid \(me) may not read it (rule 1, read)"
        #expect(try stage.connect().ask(command).errorText == expected)
    }

    @Test(arguments: [
        "SET log/k v NX", "SET log/k v XX", "SET log/k v GET", "GETDEL log/k", "APPEND log/k v",
        "SET log/k v KEEPTTL", "GETEX log/k", "GETEX log/k EX 5", "EXPIRE log/k 5", "PERSIST log/k",
        "TTL log/k", "PEXPIRETIME log/k", "STATE.SET log/k v EXPIRES keep",
        "INCR log/k", "DECRBY log/k 1", "MSETNX log/k v", "STATE.SET log/k v NX",
        "STATE.SET log/k v IFVAL hidden", "STATE.SET log/k v IFVAL x", "STATE.SET log/k v IFREV 0",
        "STATE.APPLY 1 CHECK log/k 0", "STATE.APPLY 1 SET log/k v IFREV 0",
        "STATE.APPLY 2 SET free v DELETE log/k IFREV 0",
    ])
    func `a write that would tell of the value needs read`(command: String) throws {
        let peer = try stage.connect()
        let before = stage.revision
        let expected = "NOPERM key 'log/k': uid \(me) may not read it (rule 3, read)"
        #expect(try peer.ask(command).errorText == expected)
        try peer.send("MULTI", "SET free x", command, "EXEC")
        let replies = try peer.next(4)
        #expect(replies[3].errorText?.hasSuffix(expected) == true, "\(replies[3].shown)")
        #expect(stage.revision == before)
        #expect(try peer.ask("SET log/k v").shown == "+OK")
    }

    @Test(arguments: [
        ("SET fixed/k v", "fixed/k", "write it (rule 4, write)"),
        ("DEL free fixed/k", "fixed/k", "write it (rule 4, write)"),
        ("DEL fixed/absent", "fixed/absent", "write it (rule 4, write)"),
        ("MSET free v fixed/k v", "fixed/k", "write it (rule 4, write)"),
        ("STATE.APPLY 2 SET free v DELETE fixed/k", "fixed/k", "write it (rule 4, write)"),
        ("STATE.DELETE f*", "fixed/k", "write it (rule 4, write)"),
        ("SET fixed/new v", "fixed/new", "write it (rule 4, write)"),
        ("SET new/other v", "new/other", "create it (rule 6, create)"),
        ("MSET free v new/other v", "new/other", "create it (rule 6, create)"),
        ("SET own/k v", "own/k", "write it (rule 2, write)"),
        ("STATE.REVERT fixed/k TO 1", "fixed/k", "administer it (no rule, admin)"),
        ("STATE.REVERT f* TO 1", "fixed/k", "administer it (no rule, admin)"),
    ])
    func `a command that touches one forbidden key changes nothing`(
        command: String,
        key: String,
        what: String
    ) throws {
        let before = stage.server.durable()
        let reply = try stage.connect().ask(command)
        #expect(reply.errorText == "NOPERM key '\(key)': uid \(me) may not \(what)")
        #expect(stage.server.durable() == before)
    }

    @Test func `a delete of a pattern is as if keys that may not be read were not there`() throws {
        try stage.connect().expect(
            """
            > STATE.DELETE s* DRYRUN
            > STATE.DELETE s*
            > STATE.DELETE [s]*
            {"revision": \(stage.revision), "count": 0}
            {"revision": \(stage.revision), "count": 0}
            {"revision": \(stage.revision), "count": 0}
            """
        )
    }

    @Test func `lists show what may be read`() throws {
        try stage.set("own/mine", "1", by: me)
        try stage.connect().expect(
            """
            > KEYS *
            > SCAN 0 COUNT 100
            > STATE.LIST / KEYS
            > STATE.LIST / COUNT
            > STATE.LIST / KEYS LIMIT 2
            > STATE.LIST / KEYS AT \(stage.revision - 1)
            > STATE.LIST / COUNT AT \(stage.revision - 1)
            > STATE.LIST own/ LIMIT 1
            > STATE.DELETE own/ DRYRUN
            ["fixed/k", "free", "new/k", "ops/k", "own/mine", "quiet/k"]
            ["0", ["fixed/k", "free", "new/k", "ops/k", "own/mine", "quiet/k"]]
            [["fixed/k"], ["free"], ["new/k"], ["ops/k"], ["own/mine"], ["quiet/k"]]
            6
            [["fixed/k"], ["free"]]
            [["fixed/k"], ["free"], ["new/k"], ["ops/k"], ["quiet/k"]]
            5
            [["own/mine", "1", \(stage.revision)]]
            {"revision": \(stage.revision), "count": 1}
            """
        )
    }

    @Test func `an entry is its creator's, and what he deletes is whoever's creates it next`()
        throws
    {
        let peer = try stage.connect()
        try peer.expect(
            """
            > SET own/a 1
            > GET own/a
            > SET own/a 2 XX
            > DEL own/a
            > GET own/a
            > SET own/b 1 NX
            > GET own/k
            > DEL own/k
            +OK
            "1"
            +OK
            1
            (nil)
            +OK
            (nil)
            0
            """
        )
        try stage.set("own/a", "theirs")
        #expect(try peer.ask("GET own/a").shown == "(nil)")
        let values = try peer.ask("STATE.HISTORY own/a").elements?.map { $0["value"]?.shown }
        #expect(values == ["(nil)", "\"2\"", "\"1\""])
        #expect(try peer.ask("STATE.GET own/a AT \(stage.revision)").shown == "(nil)")
    }

    @Test func `an entry that one transaction deletes and sets again stays its owner's`() throws {
        let peer = try stage.connect()
        _ = try peer.ask("SET own/a 1")
        try stage.change([("own/a", nil), ("own/a", "2")])
        #expect(try peer.ask("GET own/a").shown == "\"2\"")
    }

    @Test func `administrators alone compact, revert and delete everything`() throws {
        try stage.change([("ops/k", "new"), ("fixed/k", "new")])
        let peer = try stage.connect()
        let none = "needs admin rights, which uid \(me) does not have (no rule, admin)"
        for (command, name) in [
            ("STATE.COMPACT", "STATE.COMPACT"), ("STATE.DELETE /", "STATE.DELETE of everything"),
            ("STATE.DELETE free **", "STATE.DELETE of everything"),
            ("STATE.DELETE ?*", "STATE.DELETE of everything"),
        ] {
            #expect(try peer.ask(command).errorText == "NOPERM \(name) \(none)")
        }
        #expect(try peer.ask("STATE.REVERT / TO 2").errorText?.contains("fixed/k") == true)
        #expect(try peer.ask("STATE.REVERT ops/ TO 2")["count"] == .integer(1))
        #expect(try peer.ask("GET ops/k").shown == "\"hidden\"")
        try stage.exchange(#"{"keys": "/", "admin": ["group:mine"]}"#)
        #expect(try peer.ask("STATE.COMPACT").errorText == nil)
        #expect(try peer.ask("STATE.DELETE /")["count"] == .integer(8))
    }

    @Test func `a rule does not tell its values to whom it keeps out`() throws {
        try stage.exchange(
            """
            {"keys": "secret/", "read": ["other"], "schema": {"enum": ["tok1"]}},
            {"keys": "secret/tok2", "default": "tok1"}, {"keys": "free", "default": "open"}
            """
        )
        let peer = try stage.connect()
        let rules = try peer.ask("STATE.RULES").shown
        #expect(rules.contains("open") && rules.contains("secret/") && !rules.contains("tok"))
        #expect(try peer.ask("STATE.EXPLAIN secret/tok2").errorText?.hasPrefix("NOPERM") == true)
        #expect(try peer.ask("STATE.CHECK").errorText?.hasPrefix("NOPERM") == true)
    }

    /// A client that answers a write once its watches have told of it waits for nothing else.
    @Test(arguments: ["", " LATEST"])
    func `a writer that may not see what it writes is told how far its watch is before its reply`(
        manner: String
    ) throws {
        let peer = try stage.connect()
        let number = try #require(try peer.ask("STATE.WATCH /\(manner)")["watch"]?.integerValue)
        let mark = manner.isEmpty ? "state.progress" : "state.synced"
        for command in ["SET quiet/k v", "SET log/k v", "DEL quiet/k"] {
            let told = "push[\"\(mark)\", \(number), \(stage.revision + 1)]"
            try peer.send(command)
            let answer = command.hasPrefix("DEL") ? "1" : "+OK"
            #expect(try peer.next(2).map(\.shown) == [told, answer])
        }
    }

    @Test func `what is refused is logged once of each user and rule, however many connections`()
        throws
    {
        for _ in 0..<5 {
            let peer = try stage.connect()
            for _ in 0..<3 { _ = try peer.ask("GET secret/k") }
            _ = try peer.ask("SET secret/k v")
            _ = try peer.ask("SET fixed/k v")
        }
        let lines = stage.server.log.current.filter { $0.contains("was refused") }
        try #require(lines.count == 2)
        #expect(lines[0].contains("uid \(me), pid \(getpid()), '"))
        #expect(lines[0].hasSuffix("was refused: read, rule 1"))
    }
}
