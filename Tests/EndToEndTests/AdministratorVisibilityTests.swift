import Glibc
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What an administrator of `/` who may not read some keys is told of them.
@Suite(
    .enabled(
        if: TestUser.areThere,
        "connects as other users: run as root, with the users that scripts/test makes"
    )
)
struct AdministratorVisibilityTests {
    private let user: TestUser

    init() throws { user = try #require(TestUser(TestUser.names[1])) }

    /// Rules; `special` are options of hidden keys, and `standard` is the default of one.
    private static func rules(_ special: String = "", standard: String? = nil) -> String {
        """
        { socket: { mode: "0666" }, rules: [
          { keys: "own/", read: ["owner"], write: ["owner"], create: ["*"] },
          { keys: "shut/", read: ["root"], write: ["root"]\(special) },
          { keys: "shut/named", readonly: false\(standard.map { ", default: \($0)" } ?? "") },
          { keys: "dark/", read: ["root"] },
          { keys: "/", admin: ["stated-test-b"] },
        ] }
        """
    }

    /// A row in an area, with a key of its own.
    private struct Case {
        var row: VisibilityRow
        var key: String
        var area: String
    }

    private static let cases: [Case] = {
        var cases: [Case] = []
        for verb in Verb.Name.allCases {
            for row in verb.administratorRows {
                for area in [VisibilityRow.Area.shut, .own] where !row.taken.contains(area) {
                    let area = "\(area.rawValue)/"
                    cases.append(Case(row: row, key: "\(area)\(cases.count)", area: area))
                }
            }
        }
        return cases
    }()

    @Test(arguments: Verb.Name.allCases)
    func `each verb says what it may tell an administrator`(verb: Verb.Name) {
        #expect(!verb.administratorRows.isEmpty)
    }

    @Test func `an administrator is told nothing of a key that it may not read, verb by verb`()
        throws
    {
        let keys = AdministratorVisibilityTests.cases.map(\.key)
        let worlds = try VisibilityWorlds(
            AdministratorVisibilityTests.rules(),
            user,
            keys: keys
        )
        for (index, world) in [worlds.first, worlds.second].enumerated() {
            // What somebody else watches, handles and subscribes to.
            let name = index == 0 ? "shut/token" : "dark/other"
            let other = try world.connectAsRoot()
            try other.exchange([
                ["STATE.WATCH", name, "shut/", "free", "LATEST"],
                ["STATE.HANDLER", "ATTACH", "h", "SNAPSHOT", name, "free"],
                ["SUBSCRIBE", name],
            ])
            // Rules that a reload would take over: the values that they refuse and the defaults are hidden.
            let schema = index == 0 ? #"type: "string""# : #"type: "integer""#
            let value = index == 0 ? "\"token\"" : "3"
            _ = try world.daemon.directory.write(
                AdministratorVisibilityTests.rules(", schema: { \(schema) }", standard: value),
                to: "stated.json5"
            )
        }
        for entry in AdministratorVisibilityTests.cases {
            let replies = try [worlds.first, worlds.second].map {
                try $0.reply(to: entry.row, key: entry.key, area: entry.area)
            }
            #expect(replies[0] == replies[1], "\(entry.row.commands) of \(entry.key)")
            #expect(!replies[0].contains("token"), "\(entry.row.commands) of \(entry.key)")
        }
    }

    private func daemon(_ rules: String) throws -> (Daemon, AccessConnection) {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let file = try directory.write(rules, to: "stated.json5")
        let daemon = try Daemon(["--config", file], directory: directory)
        try AccessConnection(nil, daemon, version: 2).exchange([
            ["MSET", "shut/key", "token", "free", "12"]
        ])
        return (daemon, try AccessConnection(user, daemon, version: 3))
    }

    @Test func `a dry run lists the values that a new schema refuses, but not hidden ones`() throws
    {
        let (daemon, peer) = try daemon(AdministratorVisibilityTests.rules())
        let rules = AdministratorVisibilityTests.rules(
            #", schema: { enum: ["secret"] }"#,
            standard: "'secret'"
        )
        .replacing("rules: [", with: #"rules: [ { keys: "free", schema: { maximum: 5 } },"#)
        _ = try daemon.directory.write(rules, to: "stated.json5")
        let seen = try peer.exchange([["STATE.RELOAD", "DRYRUN"]])
        #expect(seen.contains("free") && seen.contains("12 is above 5"), "\(seen)")
        #expect(seen.contains("checked\r\n:1\r\n") && seen.contains("refused\r\n:1\r\n"))
        #expect(!seen.contains("secret") && !seen.contains("token") && !seen.contains("named"))
        let all = try AccessConnection(nil, daemon, version: 3)
            .exchange([["STATE.RELOAD", "DRYRUN"]])
        #expect(all.contains("shut/key") && all.contains("secret") && all.contains("token"))
        #expect(seen.contains("(hidden)"))
        #expect(try !peer.exchange([["STATE.RELOAD"]]).contains("secret"))
        #expect(eventually { daemon.log.contains("schema: none → (hidden)") })
        #expect(!daemon.log.contains("secret"))
    }

    @Test func `an error of a configuration does not quote it to who may not read all keys`() throws
    {
        let (daemon, peer) = try daemon(AdministratorVisibilityTests.rules())
        let rules = AdministratorVisibilityTests.rules(
            #", schema: { enum: ["secret"] }, nonsense: 1"#
        )
        _ = try daemon.directory.write(rules, to: "stated.json5")
        for command in [["STATE.RELOAD"], ["STATE.RELOAD", "DRYRUN"]] {
            let seen = try peer.exchange([command])
            #expect(seen.contains("may quote keys and values that you may not read"), "\(seen)")
            #expect(!seen.contains("secret") && !seen.contains("nonsense"))
        }
        let all = try AccessConnection(nil, daemon, version: 3)
            .exchange([["STATE.RELOAD", "DRYRUN"]])
        #expect(all.contains("secret") && all.contains("nonsense"))
    }

    @Test func `a reload that gives or takes the right to read shows no value of before or after`()
        throws
    {
        let shut = AdministratorVisibilityTests.rules(standard: "'secret'")
        let open = AdministratorVisibilityTests.rules(standard: "'public'")
            .replacing(#"keys: "shut/", read: ["root"]"#, with: #"keys: "shut/""#)
        let (daemon, peer) = try daemon(shut)
        for rules in [open, shut] {
            _ = try daemon.directory.write(rules, to: "stated.json5")
            let seen = try peer.exchange([["STATE.RELOAD", "DRYRUN"], ["STATE.RELOAD"]])
            #expect(seen.contains("shut/") && seen.contains("read"), "\(seen)")
            #expect(!seen.contains("secret") && !seen.contains("public"), "\(seen)")
        }
        #expect(!daemon.log.contains("secret"))
    }
}
