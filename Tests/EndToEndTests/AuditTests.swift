import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// The lines of the log for keys whose rule has `audit: true`.
struct AuditTests {
    private let directory: TemporaryDirectory
    private let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        let text = """
            { rules: [
              { keys: "network/", audit: true },
              { keys: "network/counters/", audit: false },
            ] }
            """
        let path = try directory.write(Array(text.utf8), to: "rules.json5")
        daemon = try Daemon("--config", path, directory: directory)
    }

    private var lines: [String] {
        daemon.log.split(separator: "\n").filter { $0.contains("notice: audit: ") }.map(String.init)
    }

    @Test func `each change of an audited key is a line with who made it, and no other is`() throws
    {
        #expect(try Statectl.run(daemon, "set", "network/a=1", "other=2").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "network/counters/x", "1").exitCode == 0)
        #expect(try Statectl.run(daemon, "delete", "network/a").exitCode == 0)
        #expect(eventually { lines.count >= 2 })
        try daemon.stop()
        let who = "by uid \(geteuid()), pid "
        #expect(lines.count == 2, "\(lines)")
        #expect(lines[0].contains("audit: set at revision 1 \(who)"))
        #expect(lines[1].contains("audit: deleted at revision 3 \(who)"))
        #expect(lines.allSatisfy { $0.hasSuffix(" ('statectl'), rule 1, line 2: key 'network/a'") })
    }

    @Test(arguments: [
        ("a\u{202E}b", #"('a\xE2\x80\xAEb')"#), ("a), rule 9, l", "('a), rule 9, l')"),
        ("a'), rule 9, (b", #"('a\x27), rule 9, (b')"#), (#"a\x27)"#, #"('a\x5Cx27)')"#),
    ])
    func `a process cannot imitate the rest of a line by its name`(
        name: String,
        shown: String
    )
        throws
    {
        let file = directory.path(of: "client.py")
        try write(
            Array(
                """
                import ctypes, socket, sys
                ctypes.CDLL(None).prctl(15, sys.argv[2].encode("utf-8", "surrogateescape"), 0, 0, 0)
                peer = socket.socket(socket.AF_UNIX)
                peer.connect(sys.argv[1])
                peer.sendall(b"SET network/a 1\\r\\n")
                assert peer.recv(5) == b"+OK\\r\\n"
                """.utf8
            ),
            to: file
        )
        let result = try runCommand("python3", [file, daemon.socketPath, name])
        #expect(result.exitCode == 0, "\(result)")
        try daemon.stop()
        #expect(lines.count == 1 && lines[0].contains(shown), "\(lines)")
        #expect(lines[0].hasSuffix(", rule 1, line 2: key 'network/a'"))
    }

    @Test func `a long key is whole, and what a key says is at the end`() throws {
        let long = "network/" + String(repeating: "component/", count: 20) + "end"
        let sly = "network/x' was deleted by uid 0"
        #expect(try Statectl.run(daemon, "set", long, "1").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", sly, "1").exitCode == 0)
        try daemon.stop()
        #expect(lines.count == 2, "\(lines)")
        #expect(lines[0].hasSuffix(": key '\(long)'"))
        #expect(lines[1].contains("audit: set at revision 2 by uid \(geteuid()), "))
        #expect(lines[1].hasSuffix(": key '\(sly)'"))
    }

    @Test func `a reload begins and ends it, and the watches of clients stay their number`() throws
    {
        let path = directory.path(of: "rules.json5")
        #expect(try Statectl.run(daemon, "status", "--json").text.contains("\"watches\":0,"))
        try write(Array("{ rules: [ { keys: 'b', audit: true } ] }".utf8), to: path)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "network/a=1", "b=2").exitCode == 0)
        try write(Array("{ }".utf8), to: path)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "b", "3").exitCode == 0)
        try daemon.stop()
        #expect(lines.count == 1 && lines[0].hasSuffix(": key 'b'"), "\(lines)")
    }

    /// A daemon whose rule for `a/` has reads logged, and what it logs of them.
    private func reads(_ commands: [[String]]) throws -> [String] {
        let path = directory.path(of: "rules.json5")
        let text = """
            { rules: [ { keys: "a/", audit: "reads" }, { keys: "a/plain/", audit: true } ] }
            """
        try write(Array(text.utf8), to: path)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        let peer = try Peer(daemon.socketPath)
        for command in commands { _ = try peer.ask(command.map { Array($0.utf8) }) }
        try daemon.stop()
        return lines.filter { $0.contains("audit: read ") }.map {
            "\($0.split(separator: ", ", maxSplits: 2)[2])"
        }
    }

    @Test(
        arguments: [
            "GET a/x", "MGET other a/x a/absent", "GETEX a/x", "GETDEL a/x", "SET a/x 2 GET",
            "GETSET a/x 2", "GETRANGE a/x 0 1", "DUMP a/x", "COPY a/x other", "RENAME a/x other",
            "STATE.GET a/x", "STATE.HISTORY a/x", "DIGEST a/x",
        ]
    )
    func `a command that gives a value away is a read, once a minute`(command: String) throws {
        let words = command.split(separator: " ").map(String.init)
        let found = try reads([["SET", "a/x", "1"], words, ["SET", "a/x", "1"], words])
        #expect(found == ["\(words[0]), rule 1, line 1: key 'a/x'"])
    }

    @Test(
        arguments: [
            ("STATE.LIST a/", "keys 'a/'"), ("STATE.LIST /", "keys '/'"),
            ("STATE.LIST a/*x", "keys 'a/*x'"), ("STATE.LIST a/x", "key 'a/x'"),
            ("STATE.CHANGES SINCE 0 a/", "keys 'a/'"), ("STATE.BACKUP BEGIN", "keys '/'"),
            ("STATE.CHECK", "keys '/'"), ("STATE.DEFAULTS a/", "keys 'a/'"),
            ("MONITOR", "keys '/'"), ("SLOWLOG GET", "keys '/'"),
        ]
    )
    func `one about a pattern is a line with the pattern`(command: String, keys: String) throws {
        let words = command.split(separator: " ").map(String.init)
        let found = try reads([["SET", "a/x", "1"], words])
        #expect(found == ["\(words[0]), rule 1, line 1: \(keys)"])
    }

    @Test func `what gives no value, what is elsewhere, and an exception are none`() throws {
        let commands = [
            "SET a/x 1", "SET a/plain/x 1", "SET other 1", "EXISTS a/x", "STRLEN a/x", "TTL a/x",
            "TYPE a/x", "KEYS *", "SCAN 0", "STATE.LIST a/ KEYS", "STATE.LIST other/", "GET other",
            "GET a/plain/x", "GET a/absent", "INCR a/x", "DEL a/x",
        ]
        let words = commands.map { $0.split(separator: " ").map(String.init) }
        #expect(try reads(words) == [])
    }

    @Test func `a read in a transaction is logged when that runs`() throws {
        let set = ["SET", "a/x", "1"]
        #expect(
            try reads([
                set, ["MULTI"], ["GET", "a/x"], ["DISCARD"], ["MULTI"], ["GET", "a/x"], ["EXEC"],
            ])
                == ["GET, rule 1, line 1: key 'a/x'"]
        )
    }

    @Test func `a transaction that does not run reads nothing, nor does a key that has expired`()
        throws
    {
        let refused = [["MULTI"], ["GET", "a/x"], ["NOSUCH"], ["EXEC"]]
        let changed = [
            ["WATCH", "a/x"], ["SET", "a/x", "2"], ["MULTI"], ["GET", "a/x"], ["EXEC"],
        ]
        let expired = [["SET", "a/y", "1", "PXAT", "1"], ["GET", "a/y"]]
        #expect(try reads([["SET", "a/x", "1"]] + refused + changed + expired) == [])
    }

    @Test func `a watch is logged when it begins`() throws {
        let found = try reads([
            ["HELLO", "3"], ["STATE.WATCH", "a/"], ["SET", "a/x", "1"], ["SET", "a/x", "2"],
        ])
        #expect(found == ["STATE.WATCH, rule 1, line 1: keys 'a/'"])
    }
}
