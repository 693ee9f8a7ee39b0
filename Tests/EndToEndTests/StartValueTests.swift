import Glibc
import StateTestSupport
import Testing

/// Values that the daemon sets at its start: credentials of systemd, and those of early boot.
struct StartValueTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    // MARK: Credentials

    private func configuration(_ more: String = "") throws -> [String] {
        let text = "{ credentials: 'app/secret/'\(more) }"
        return ["--config", try directory.write(text, to: "stated.json5")]
    }

    private func credentials(_ files: [(String, String)]) throws -> [String: String] {
        let place = directory.path(of: "credentials")
        mkdir(place, 0o700)
        for (name, text) in files { _ = try directory.write(text, to: "credentials/\(name)") }
        return ["CREDENTIALS_DIRECTORY": place]
    }

    private func get(_ daemon: Daemon, _ key: String) throws -> String? {
        let result = try Statectl.run(daemon, "get", key, "--raw")
        return result.exitCode == 0 ? result.text : nil
    }

    @Test func `credentials are values from the start on, in one commit, and only what is new`()
        throws
    {
        let environment = try credentials([("token", "a\nb"), ("key", "k")])
        var daemon = try Daemon(try configuration(), directory: directory, environment: environment)
        #expect(try get(daemon, "app/secret/token") == "a\nb")
        #expect(try get(daemon, "app/secret/key") == "k")
        for key in ["app/secret/token", "app/secret/key"] {
            #expect(try Statectl.run(daemon, "get", key, "--json").text.contains("\"revision\":1,"))
        }
        #expect(try Statectl.run(daemon, "set", "app/secret/other", "1").exitCode == 0)
        try daemon.stop()
        _ = try credentials([("token", "c")])
        daemon = try Daemon(try configuration(), directory: directory, environment: environment)
        #expect(try get(daemon, "app/secret/token") == "c")
        #expect(try get(daemon, "app/secret/other") == "1")
        #expect(try Statectl.run(daemon, "history", "app/secret/key").lines.count == 1)
    }

    @Test func `a credential that a rule refuses is named, and the daemon serves without any`()
        throws
    {
        let environment = try credentials([("a", "1"), ("number", "none")])
        let rule = ", rules: [{ keys: 'app/secret/number', schema: { type: 'integer' } }]"
        let daemon = try Daemon(
            try configuration(rule),
            directory: directory,
            environment: environment
        )
        #expect(try get(daemon, "app/secret/a") == nil)
        #expect(eventually { daemon.log.contains("credentials are not set below app/secret/") })
        #expect(daemon.log.contains("a rule refuses the value of key 'app/secret/number'"))
        #expect(!daemon.log.contains("none"))
    }

    @Test func `a prefix without its slash is refused`() throws {
        let path = try directory.write("{ credentials: 'app' }", to: "check.json5")
        let result = try runCommand(builtProgram("stated"), ["--check-config", path])
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("expected a prefix such as"))
    }

    // MARK: Early boot

    @Test func `what a daemon kept before is adopted once, in one commit, and removed`() throws {
        let early = try TemporaryDirectory()
        let first = try Daemon(directory: early)
        #expect(try Statectl.run(first, "set", "net/a=1", "net/b=2").exitCode == 0)
        #expect(try Statectl.run(first, "set", "boot/x", "early").exitCode == 0)
        #expect(try Statectl.run(first, "set", "boot/t", "1", "--ttl", "1h").exitCode == 0)
        try first.stop()
        var daemon = try Daemon(directory: directory)
        #expect(try Statectl.run(daemon, "set", "net/a=1", "boot/x=old").exitCode == 0)
        try daemon.stop()
        let store = first.dataPath
        daemon = try Daemon(["--adopt", store], directory: directory)
        #expect(try get(daemon, "boot/x") == "early")
        #expect(try get(daemon, "net/b") == "2")
        let rest = try Statectl.run(daemon, "ttl", "boot/t").text
        #expect(rest.hasPrefix("59m") || rest.hasPrefix("1h"), "\(rest)")
        // The same value makes no commit.
        #expect(try Statectl.run(daemon, "history", "net/a").lines.count == 1)
        #expect(access(store + "/stated.db", F_OK) != 0)
        try daemon.stop()
        daemon = try Daemon(["--adopt", store], directory: directory)
        #expect(try get(daemon, "boot/x") == "early")
    }

    @Test func `what a rule refuses stays in its directory, and the daemon serves`() throws {
        let early = try TemporaryDirectory()
        let first = try Daemon(directory: early)
        #expect(try Statectl.run(first, "set", "net/a", "text").exitCode == 0)
        try first.stop()
        let store = first.dataPath
        let rules = "{ rules: [{ keys: 'net/', schema: { type: 'integer' } }] }"
        let path = try directory.write(rules, to: "stated.json5")
        let daemon = try Daemon(["--config", path, "--adopt", store], directory: directory)
        #expect(try get(daemon, "net/a") == nil)
        #expect(access(store + "/stated.db", F_OK) == 0)
        #expect(eventually { daemon.log.contains("the values of early boot stay in") })
    }
}
