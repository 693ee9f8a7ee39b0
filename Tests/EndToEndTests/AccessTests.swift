import Glibc
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Two unprivileged users and root on one socket.
@Suite(
    .enabled(
        if: TestUser.areThere,
        "only root can connect as other users: scripts/test makes them"
    )
)
struct AccessTests {
    private let daemon: Daemon
    private let (a, b): (TestUser, TestUser)

    private static let rules = """
        { socket: { mode: "0666" }, rules: [
          { keys: "secret/", read: ["root"], write: ["root"] },
          { keys: "team/", read: ["group:stated-test"], write: ["stated-test-a"] },
          { keys: "own/", read: ["owner"], write: ["owner"], create: ["*"] },
          { keys: "log/", read: ["root"] },
          { keys: "quiet/", watch: ["root"] },
        ] }
        """

    init() throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let file = try directory.write(AccessTests.rules, to: "stated.json5")
        daemon = try Daemon(["--config", file], directory: directory)
        a = try #require(TestUser(TestUser.names[0]))
        b = try #require(TestUser(TestUser.names[1]))
    }

    /// What the test knows of a token: where it stands, and who set it.
    private struct Token {
        var area: String
        var owner: UInt32
    }

    /// Whether a user may ever receive a value of an area.
    private func mayRead(_ token: Token, _ actor: AccessActor) -> Bool {
        switch token.area {
        case "secret", "log", "hidden": actor.uid == 0
        case "team": actor.uid == 0 || actor.uid == a.uid
        case "own": actor.uid == 0 || actor.uid == token.owner
        default: true
        }
    }

    @Test(arguments: Seed.each(2))
    func `no byte of what a rule forbids reaches its user, and what it allows does`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let actors = [
            try AccessActor(nil, daemon), try AccessActor(a, daemon), try AccessActor(b, daemon),
        ]
        var known: [String: Token] = [:]
        // Not a tenth of them anywhere: each user has to see something of each area.
        for _ in 0..<600 {
            let actor = actors.randomElement(using: &random) ?? actors[0]
            let area = ["secret", "team", "own", "log", "quiet", "free"].randomElement(
                using: &random
            )
            try step(actor, area ?? "free", &known, &random)
        }
        for actor in actors.dropFirst() {
            // All others of this area may have become somebody else's.
            let digits = String(UInt64.random(in: 1 << 62...UInt64.max, using: &random))
            known[digits] = Token(area: "own", owner: actor.uid)
            let key = "own/of \(actor.uid)"
            try actor.connections[0].exchange([["SET", key, "tok:\(digits)"], ["GET", key]])
        }
        for actor in actors { try actor.lookBack(daemon) }
        try actors[0].connections[0].exchange([["SET", "free/last", "1"]])
        for actor in actors {
            try actor.hear("free/last")
            let seen = tokens(in: actor.received)
            let allowed = known.filter { mayRead($0.value, actor) }
            let leaked = seen.filter { known[$0] != nil && allowed[$0] == nil }
            #expect(leaked.isEmpty, "uid \(actor.uid), seed \(seed): \(leaked.map { known[$0] })")
            for area in Set(allowed.values.map(\.area)) {
                let count = seen.count { allowed[$0]?.area == area }
                #expect(count > 0, "uid \(actor.uid) has seen nothing of \(area), seed \(seed)")
            }
        }
    }

    /// One random command, or a few of them as a transaction.
    private func step(
        _ actor: AccessActor,
        _ area: String,
        _ known: inout [String: Token],
        _ random: inout SplitMix
    ) throws {
        func token(_ area: String) -> String {
            let digits = String(UInt64.random(in: 1 << 62...UInt64.max, using: &random))
            known[digits] = Token(area: area, owner: actor.uid)
            return "tok:\(digits)"
        }
        // What root sets for another would be the other's.
        let name = area == "own" && actor.uid == 0 ? "own/root" : area
        let key = "\(name)/\(Int.random(in: 0..<6, using: &random))"
        let connection = actor.connections.randomElement(using: &random) ?? actor.connections[0]
        if actor.uid == 0, Int.random(in: 0..<4, using: &random) == 0 {
            // Keys that nobody else names: their names are secret, too.
            try connection.exchange([["SET", "secret/\(token("hidden"))", token("secret")]])
        }
        let commands = commands(key, area, token)
        var chosen: [[String]] = []
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            chosen.append(commands.randomElement(using: &random) ?? ["PING"])
        }
        if Int.random(in: 0..<5, using: &random) == 0 { chosen = [["MULTI"]] + chosen + [["EXEC"]] }
        try connection.exchange(chosen)
    }

    private func commands(
        _ key: String,
        _ area: String,
        _ token: (String) -> String
    ) -> [[String]] {
        let value = token(area)
        return [
            ["SET", key, value], ["SET", key, value], ["SET", key, value, "GET"],
            ["SET", key, value, "NX"], ["SET", key, value, "XX"], ["GET", key],
            ["MGET", key, "free/1"],
            ["SET", key, value, "EX", "1000"], ["SET", key, value, "KEEPTTL"], ["TTL", key],
            ["EXPIRE", key, "1000"], ["PERSIST", key], ["GETEX", key, "EX", "1000"],
            ["GETDEL", key], ["DEL", key], ["DEL", key, "free/1"], ["APPEND", key, value],
            ["INCR", key], ["EXISTS", key], ["STRLEN", key], ["TYPE", key], ["KEYS", "*"],
            ["SCAN", "0", "COUNT", "1000"], ["MSET", key, value, "free/2", token("free")],
            ["MSETNX", key, value], ["WATCH", key], ["STATE.GET", key],
            ["STATE.GET", key, "AT", "5"],
            ["STATE.SET", key, value, "IFREV", "0"], ["STATE.SET", key, value, "IFVAL", "x"],
            ["STATE.APPLY", "2", "SET", key, value, "CHECK", "free/1", "0"],
            ["STATE.DELETE", "\(area)/", "DRYRUN"], ["STATE.DELETE", key],
            ["STATE.DELETE", "\(area)/"],
            ["STATE.LIST", "/"], ["STATE.LIST", "\(area)/", "LONG"],
            ["STATE.LIST", "/", "AT", "9"],
            ["STATE.HISTORY", key], ["STATE.REVERT", key, "TO", "3"],
            ["STATE.CHANGES", "SINCE", "1", "PREVIOUS", "/"], ["STATE.CHANGES", "SINCE", "1", key],
            ["STATE.CHANGES", "SINCE", "999999999", "/"], ["STATE.WATCHES"], ["STATE.HANDLERS"],
            ["STATE.HANDLER", "ATTACH", "h", "\(area)/"], ["CLIENT", "LIST"], ["STATE.STATUS"],
            ["INFO"], ["PUBLISH", key, value], ["PUBLISH", "free/channel", token("free")],
            ["PUBSUB", "CHANNELS"], ["DBSIZE"],
        ]
    }

    @Test func `the kernel tells a daemon the groups of its peer`() throws {
        let refused = try AccessConnection(b, daemon, version: 2)
        #expect(try refused.exchange([["GET", "secret/k"]]).contains("-NOPERM key 'secret/k'"))
        #expect(try refused.exchange([["GET", "team/k"]]).contains("(rule 2, line 3, read)"))
        let allowed = try AccessConnection(a, daemon, version: 2)
        #expect(
            try allowed.exchange([["SET", "team/k", "1"], ["GET", "team/k"]]).contains(
                "+OK\r\n$1\r\n1"
            )
        )
    }

    @Test func `a change of access is known after a restart`() throws {
        let peer = try AccessConnection(nil, daemon, version: 2)
        try peer.exchange([["SET", "secret/k", "tok:1"], ["SET", "free/k", "1"]])
        try daemon.restart()
        let same = try AccessConnection(b, daemon, version: 2)
        #expect(try same.exchange([["STATE.CHANGES", "SINCE", "1", "/"]]).contains("$2\r\nok"))
        try daemon.stop()
        let open = AccessTests.rules.replacing(#"read: ["root"], write"#, with: "write")
        _ = try daemon.directory.write(open, to: "stated.json5")
        try daemon.start()
        let other = try AccessConnection(b, daemon, version: 2)
        let changes = try other.exchange([["STATE.CHANGES", "SINCE", "3", "/"]])
        #expect(changes.contains("$3\r\ngap") && changes.contains("tok:1"))
        let root = try AccessConnection(nil, daemon, version: 2)
        #expect(try root.exchange([["STATE.CHANGES", "SINCE", "1", "/"]]).contains("$2\r\nok"))
    }

    @Test func `from 0 a user gets every change that rules let the user see, and no gap`() throws {
        let root = try AccessConnection(nil, daemon, version: 2)
        try root.exchange([["SET", "secret/k", "tok:1"], ["SET", "free/k", "tok:2"]])
        for hidden in ["tok:1", "tok:2"] {
            let shown = hidden == "tok:1" ? "tok:2" : "tok:1"
            let changes = try AccessConnection(b, daemon, version: 2)
                .exchange([["STATE.CHANGES", "SINCE", "0", "/"]])
            #expect(changes.contains("$2\r\nok") && changes.contains(shown), "\(changes)")
            #expect(!changes.contains(hidden))
            let watching = try AccessConnection(b, daemon, version: 3)
            try watching.exchange([["STATE.WATCH", "/", "FROM", "0"]])
            try watching.wait(for: shown)
            let received = String(decoding: watching.received, as: UTF8.self)
            #expect(!received.contains("state.gap") && !received.contains(hidden))
            let rules = #"{ socket: { mode: "0666" }, rules: [{ keys: "free/", read: ["root"] }] }"#
            _ = try daemon.directory.write(rules, to: "stated.json5")
            #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        }
    }

    @Test func `a reload that changes access begins a watch anew with what may be seen then`()
        throws
    {
        let root = try AccessConnection(nil, daemon, version: 2)
        try root.exchange([["SET", "free/k", "tok:1"], ["SET", "secret/k", "tok:2"]])
        let watching = try AccessConnection(b, daemon, version: 3)
        try watching.exchange([["STATE.WATCH", "/", "SNAPSHOT"]])
        try watching.wait(for: "tok:1")
        for (rules, hidden, seen) in [
            (#"{ keys: "free/", read: ["root"] }, { keys: "secret/", read: ["root"] }"#, "3", "4"),
            (#"{ keys: "free/", read: ["root"] }"#, "5", "2"),
        ] {
            let text = #"{ socket: { mode: "0666" }, rules: [ \#(rules) ] }"#
            _ = try daemon.directory.write(text, to: "stated.json5")
            let start = watching.received.count
            #expect(try Statectl.run(daemon, "reload").exitCode == 0)
            try watching.wait(for: "state.gap", from: start)
            try root.exchange([["SET", "free/k", "tok:\(hidden)"], ["SET", "shown", "tok:4"]])
            try watching.wait(for: "tok:\(seen)", from: start)
        }
        let all = String(decoding: watching.received, as: UTF8.self)
        #expect(!all.contains("tok:3") && !all.contains("tok:5"))
        #expect(all.split(separator: "state.gap").count == 3)
    }
}
