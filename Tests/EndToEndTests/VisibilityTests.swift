import Glibc
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Two daemons that differ in one thing: in the first there are keys that a user may not read, in the second there are not.
///
/// The revisions are the same, and so has to be every byte that the user gets.
final class VisibilityWorlds {
    let first: World
    let second: World

    /// One daemon, served for the user.
    final class World {
        let daemon: Daemon
        let root: AccessConnection
        private let user: TestUser
        private let shared: AccessConnection
        private var others: [AccessConnection] = []

        init(_ rules: String, _ user: TestUser) throws {
            let directory = try TemporaryDirectory()
            chmod(directory.path, 0o711)
            let file = try directory.write(rules, to: "stated.json5")
            daemon = try Daemon(["--config", file], directory: directory)
            root = try AccessConnection(nil, daemon, version: 2)
            try root.exchange([["SET", "free", "1"]])
            self.user = user
            shared = try AccessConnection(user, daemon, version: 3)
        }

        func connectAsRoot() throws -> AccessConnection {
            let connection = try AccessConnection(nil, daemon, version: 3)
            others.append(connection)
            return connection
        }

        func connect() throws -> AccessConnection {
            let connection = try AccessConnection(user, daemon, version: 3)
            others.append(connection)
            return connection
        }

        /// What the user gets for a row, without what differs between any two daemons.
        func reply(to row: VisibilityRow, key: String, area: String) throws -> String {
            let commands = row.commands.map { command in
                command.replacing("KEY", with: key).replacing("AREA", with: area)
                    .split(separator: " ").map(String.init)
            }
            let connection = row.needsConnection ? try connect() : shared
            let start = connection.received.count
            do {
                try connection.exchange(commands)
                if let last = row.last { try connection.wait(for: last, from: start) }
            } catch {
                // QUIT ends the stream, and a push that does not come is missing in the reply.
            }
            if row.last != nil { try connection.exchange([]) }
            let text = plain(connection.received[start...])
            guard row.hasAmounts else { return text }
            // Many digits are a time or an epoch to `plain`, also behind a point.
            let amount = /([0-9]+|TIME|EPOCH)(\.([0-9]+|TIME|EPOCH))?(e-[0-9]+)?/
            return text.replacing(amount, with: "N")
        }

        /// Bytes without what differs between any two daemons: epoch, places, processes, times, and marks.
        func plain(_ bytes: some Collection<UInt8>) -> String {
            String(decoding: bytes, as: UTF8.self)
                .replacing(daemon.directory.path, with: "DIRECTORY")
                .replacing(/\b[0-9a-f]{16}\b/, with: "EPOCH")
                // What a watch is told at first may come before the reply to a mark or behind it.
                .replacing(/\$[0-9]+\r\nmark-[0-9]+-(\r\n)?/, with: "")
                .replacing(/(pid|uptime|id|client)\r\n:[0-9]+/) { "\($0.output.1)" }
                .replacing(/(process_id|uptime_in_seconds|total_[a-z_]+):[0-9]+/) {
                    "\($0.output.1)"
                }
                .replacing(/\b(id|fd|age|idle|qbuf|omem|tot-mem)=[0-9]+/) { "\($0.output.1)" }
                .replacing(/(addr=[^ ]*):[0-9]+/) { "\($0.output.1)" }
                .replacing(/(run_id|server_time_usec|used_cpu_[a-z]+):[0-9a-f.]+/) {
                    "\($0.output.1)"
                }
                // Their lengths count what was taken out.
                .replacing(/\$[0-9]+\r\n(# Server|DIRECTORY|id )/) { "\($0.output.1)" }
                .replacing(/[0-9]{9,}(\r\n\$[0-9]\r\n[0-9]{1,6}\b)?/, with: "TIME")
        }
    }

    init(_ rules: String, _ user: TestUser, keys: [String]) throws {
        first = try World(rules, user)
        second = try World(rules, user)
        try first.root.exchange([["MSET"] + keys.flatMap { [$0, "7"] }])
        try second.root.exchange([["MSET", "dark/key", "7"]])
    }
}

/// What a user may not read, and what he is told of it.
@Suite(
    .enabled(
        if: TestUser.areThere,
        "connects as other users: run as root, with the users that scripts/test makes"
    )
)
struct VisibilityTests {
    private let user: TestUser

    private static let rules = """
        { socket: { mode: "0666" }, rules: [
          { keys: "own/", read: ["owner"], write: ["owner"], create: ["*"] },
          { keys: "typed/", read: ["owner"], write: ["owner"], create: ["*"], schema: { type: "integer" } },
          { keys: "ops/", read: ["owner"], write: ["owner"], create: ["*"], admin: ["stated-test-a"] },
          { keys: "drop/", read: ["owner"] },
          { keys: "once/", read: ["owner"], writeOnce: true },
          { keys: "shut/", read: ["root"], write: ["root"] },
          { keys: "dark/", read: ["root"] },
        ] }
        """

    init() throws { user = try #require(TestUser(TestUser.names[0])) }

    /// A row in an area, with a key of its own.
    private struct Case {
        var row: VisibilityRow
        var area: VisibilityRow.Area
        var key: String
    }

    private static let cases: [Case] = {
        var cases: [Case] = []
        for verb in Verb.Name.allCases {
            for row in verb.visibilityRows {
                for area in VisibilityRow.Area.allCases {
                    cases.append(Case(row: row, area: area, key: "\(area.rawValue)/\(cases.count)"))
                }
            }
        }
        return cases
    }()

    private func worlds() throws -> VisibilityWorlds {
        try VisibilityWorlds(VisibilityTests.rules, user, keys: VisibilityTests.cases.map(\.key))
    }

    private func replies(_ entry: Case, _ worlds: VisibilityWorlds) throws -> [String] {
        try [worlds.first, worlds.second].map {
            try $0.reply(to: entry.row, key: entry.key, area: "\(entry.area.rawValue)/")
        }
    }

    @Test(arguments: Verb.Name.allCases) func `each verb says what it may tell`(verb: Verb.Name) {
        #expect(!verb.visibilityRows.isEmpty)
    }

    @Test func `a key that may not be read answers as one that is not there, byte for byte`() throws
    {
        let worlds = try worlds()
        let told = VisibilityTests.cases
        // Order matters: where names are taken, one world writes what the other refuses, and their revisions part.
        let (taken, same) = (
            told.filter { $0.row.taken.contains($0.area) },
            told.filter { !$0.row.taken.contains($0.area) }
        )
        for entry in same.filter({ !$0.row.creates }) + same.filter(\.row.creates) {
            let replies = try replies(entry, worlds)
            #expect(replies[0] == replies[1], "\(entry.row.commands) of \(entry.key)")
        }
        for entry in taken {
            let replies = try replies(entry, worlds)
            #expect(
                replies[0].contains(/-(NOPERM|REJECTED|EXECABORT)/) && !replies[1].contains("\r\n-")
                    && !replies[1].hasPrefix("-"),
                "\(entry.row.commands) of \(entry.key): \(replies)"
            )
        }
    }

    @Test func `what is pushed does not depend on changes of keys that may not be read`() throws {
        let worlds = try worlds()
        let watches = [
            "own/ free/ BY PREVIOUS", "own/* drop/ shut/ free/ LATEST", "own/ free/ SNAPSHOT",
        ]
        let streams = try [worlds.first, worlds.second].map { world in
            let hearers = try watches.map { watch in
                let hearer = try world.connect()
                try hearer.exchange([["STATE.WATCH"] + watch.split(separator: " ").map(String.init)]
                )
                return hearer
            }
            let subscriber = try world.connect()
            try subscriber.exchange([["PSUBSCRIBE", "__key*__:*"]])
            try hearers[2].wait(for: "state.synced")
            for number in 0..<20 {
                // In one world they are among the keys that are watched.
                let area = world === worlds.first ? ["own", "drop", "shut"][number % 3] : "dark"
                try world.root.exchange([["SET", "\(area)/\(number)", "7"]])
                try hearers[number % 3].exchange([["SET", "free/k", "\(number)"]])
            }
            try world.root.exchange([["SET", "free/end", "1"]])
            return try (hearers + [subscriber]).map { hearer in
                try hearer.wait(for: "free/end")
                try hearer.exchange([])
                // Bookmarks come by the clock, too; that hidden changes hasten none, HiddenKeyTests shows.
                let bookmark = />3\r\n\$1[24]\r\nstate\.(progress|synced)\r\n:[0-9]+\r\n:[0-9]+\r\n/
                return world.plain(hearer.received).replacing(bookmark, with: "")
            }
        }
        for (first, second) in zip(streams[0], streams[1]) { #expect(first == second) }
    }

    @Test func `a file that is refused is named to nobody but administrators`() throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let files = directory.path(of: "files")
        mkdir(files, 0o700)
        _ = try directory.write("token", to: "files/secret")
        let rules = """
            { socket: { mode: "0666" }, rules: [
              { keys: "app/", backing: "file", directory: "\(files)", schema: { type: "integer" } },
            ] }
            """
        let file = try directory.write(rules, to: "stated.json5")
        let daemon = try Daemon(["--config", file], directory: directory)
        let root = try AccessConnection(nil, daemon, version: 2)
        let seen = try root.exchange([["STATE.STATUS"]])
        #expect(seen.contains("files/secret") && seen.contains("token"))
        let told = try AccessConnection(user, daemon, version: 2).exchange([["STATE.STATUS"]])
        #expect(told.contains("revision"))
        #expect(!told.contains("secret") && !told.contains("token") && !told.contains("files"))
    }

    @Test func `the schema of a glob whose keys may not be read is not shown`() throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        let rules = """
            { socket: { mode: "0666" }, rules: [
              { keys: "*secret", read: ["root"], schema: { enum: ["token"] } },
              { keys: "x?[ab]/pin", read: ["root"], schema: { enum: ["token"] } },
              { keys: "open/*", schema: { enum: ["plain"] } },
            ] }
            """
        let file = try directory.write(rules, to: "stated.json5")
        let daemon = try Daemon(["--config", file], directory: directory)
        let shown = try AccessConnection(user, daemon, version: 2).exchange([["STATE.RULES"]])
        #expect(shown.contains("*secret") && shown.contains("plain") && !shown.contains("token"))
        let all = try AccessConnection(nil, daemon, version: 2).exchange([["STATE.RULES"]])
        #expect(all.split(separator: "token").count == 3)
    }

    @Test func `EXEC does not tell whether a key has changed that may not be read any more`() throws
    {
        for changes in [false, true] {
            let directory = try TemporaryDirectory()
            chmod(directory.path, 0o711)
            let open =
                #"{ socket: { mode: "0666" }, rules: [ { keys: "free", readonly: false } ] }"#
            let file = try directory.write(open, to: "stated.json5")
            let daemon = try Daemon(["--config", file], directory: directory)
            let root = try AccessConnection(nil, daemon, version: 2)
            let peer = try AccessConnection(user, daemon, version: 2)
            try root.exchange([["SET", "key", "1"]])
            try peer.exchange([["WATCH", "key", "absent"]])
            let shut = open.replacing("readonly: false", with: #"read: ["root"]"#)
                .replacing(#""free""#, with: #""/""#)
            _ = try directory.write(shut, to: "stated.json5")
            #expect(try Statectl.run(daemon, "reload").exitCode == 0)
            if changes { try root.exchange([["SET", "key", "2"], ["SET", "absent", "2"]]) }
            #expect(
                try peer.exchange([["MULTI"], ["PING"], ["EXEC"]]).contains("QUEUED\r\n*-1\r\n")
            )
        }
    }
}
