import Glibc
import StateClient
import StateEngine
import StateRules
import StateTestSupport
import Testing

/// `stated --config`, and what its rules allow and refuse on each way in.
struct ConfigurationTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func file(_ text: String) throws -> String {
        let path = directory.path(of: "stated.json5")
        try write(Array(text.utf8), to: path)
        return path
    }

    private func daemon(_ text: String) throws -> Daemon {
        try Daemon(["--config", file(text)])
    }

    private func check(_ text: String) throws -> CommandResult {
        try runCommand(builtProgram("stated"), ["--check-config", file(text)])
    }

    /// Where the repository has the configuration that is the manual.
    private var manual: String {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/config/stated.json5"
    }

    @Test func `the manual starts the daemon, and names every limit with its default`() throws {
        let daemon = try Daemon(["--config", manual])
        #expect(try daemon.connect().set([1], for: "k").revision == 1)
        let text = String(decoding: try readFile(manual), as: UTF8.self)
        for option in LimitOption.allCases {
            let name = option.rawValue
            let line = try #require(
                text.split(separator: "\n").first { $0.contains("    \(name): ") },
                "\(name) is missing"
            )
            let written = line.drop { $0 != ":" }.dropFirst(2).filter { $0 != "," && $0 != "\"" }
            let number =
                option.unit == .milliseconds
                ? Int64(try Quantity.duration(String(written)) / .milliseconds(1))
                : try Quantity.byteCount(String(written))
            #expect(number == Int64(option.standard), "\(name)")
        }
        let standard = (limits: Limits(), history: HistoryLimits())
        #expect(Configuration().limits.keyspace == standard.limits)
        #expect(text.contains("age: \"7d\"") && standard.history.age == .seconds(7 * 86_400))
        #expect(text.contains("changes: 1000000") && standard.history.changeCount == 1_000_000)
        #expect(text.contains("bytes: \"1GiB\"") && standard.history.byteCount == 1 << 30)
    }

    @Test func `a value that breaks a rule is refused on every way in, and nothing changes`() throws
    {
        let daemon = try daemon(
            """
            { rules: [
              { keys: "audio/", schema: { type: "number", minimum: 0, maximum: 1 } },
              { keys: "once/", writeOnce: true }, { keys: "fixed", readonly: true },
              { keys: "short", limits: { valueBytes: 3 } },
            ] }
            """
        )
        let client = try daemon.connect()
        #expect(try client.set(Array("0.5".utf8), for: "audio/volume").revision == 1)
        let expected = "key 'audio/volume': 2 is above 1 (rule 1, line 2, schema)"
        let refusal = #expect(throws: StateError.self) {
            _ = try client.set(Array("2".utf8), for: "audio/volume")
        }
        #expect(refusal?.code == .rejected && refusal?.message == expected)
        let statectl = try Statectl.run(daemon, "set", "audio/volume", "2")
        #expect(statectl.exitCode == 4 && statectl.errorText.contains(expected))
        let lines = directory.path(of: "lines")
        try write(
            Array(#"{"key":"audio/a","value":"1"}\#n{"key":"audio/b","value":"9"}\#n"#.utf8),
            to: lines
        )
        #expect(try Statectl.run(daemon, "import", lines).exitCode == 4)
        #expect(try client.value(for: "audio/a") == nil)
        _ = try client.set([1], for: "once/a")
        for attempt in [
            ["set", "once/a", "2"], ["delete", "once/a"], ["set", "fixed", "1"],
            ["set", "short", "four"],
        ] {
            #expect(
                try Statectl.run(["--socket", daemon.socketPath] + attempt).exitCode == 4,
                "\(attempt)"
            )
        }
        #expect(try client.status().first { $0.name == "revision" }?.number == 2)
    }

    @Test func `a new rule leaves what is stored, and REVERT obeys it`() throws {
        let path = try file("{}")
        let daemon = try Daemon(["--config", path])
        _ = try daemon.connect().set(Array("5".utf8), for: "audio/volume")
        _ = try daemon.connect().set(Array("0.5".utf8), for: "audio/volume")
        _ = try daemon.connect().set(Array("7".utf8), for: "audio/mute")
        try daemon.stop()
        _ = try file("{ rules: [ { keys: 'audio/', schema: { type: 'number', maximum: 1 } } ] }")
        try daemon.start()
        let client = try daemon.connect()
        #expect(try client.value(for: "audio/mute") == Array("7".utf8))
        let revert = try Statectl.run(daemon, "revert", "audio/volume", "--to", "1")
        #expect(
            revert.exitCode == 4
                && revert.errorText.contains("5 is above 1 (rule 1, line 1, schema)")
        )
        #expect(try client.value(for: "audio/volume") == Array("0.5".utf8))
        #expect(try Statectl.run(daemon, "revert", "audio/volume", "--to", "2").exitCode == 0)
    }

    @Test func `what stands in the file counts, and the command line more`() throws {
        let path = try file(#"{ limits: { valueBytes: 3 }, history: { changes: 5 } }"#)
        let daemon = try Daemon(["--config", path])
        #expect(throws: StateError.self) { _ = try daemon.connect().set([1, 2, 3, 4], for: "k") }
        let other = try Daemon(["--value-bytes", "4", "--config", path])
        #expect(try other.connect().set([1, 2, 3, 4], for: "k").revision == 1)
    }

    @Test(arguments: [
        ("{ data: 5 }", "1:3: data: expected a string in quotes, not 5"),
        (
            "{ limits: {\n client: 5 } }",
            "2:2: limits.client: unknown option; did you mean 'clients'?"
        ),
        ("{ data: '/x', data: '/y' }", "1:15: data: this option appears twice"),
        ("{ socket: { mode: \"0660\" }", "1:27: expected '}'"),
        ("[]", "1:1: expected an object in { }, not an array"),
        ("", "1:1: expected a value"),
    ])
    func `a file that cannot be used is refused with its place`(
        text: String,
        message: String
    ) throws {
        let path = try file(text)
        let result = try check(text)
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains("\(path):\(message)"))
        let started = try runCommand(builtProgram("stated"), ["--config", path])
        #expect(started.exitCode == 2 && started.errorText.contains(message))
    }

    @Test func `a file that can be used says so`() throws {
        let result = try check("{ rules: [ { keys: 'a', readonly: true } ] }")
        #expect(result.exitCode == 0 && result.text.contains("is valid: 1 rule"))
        #expect(
            try runCommand(builtProgram("stated"), ["--check-config", "/nowhere"]).exitCode == 2
        )
    }

    @Test func `so many files of rules are read, and no more`() throws {
        let path = try file("{ rules: [ { keys: 'a', readonly: true } ] }")
        #expect(mkdir(directory.path(of: "rules.d"), 0o755) == 0)
        for number in 0..<1_000 { try directory.write("{}", to: "rules.d/\(number).json5") }
        // These are none.
        try directory.write("{", to: "rules.d/.hidden.json5")
        try directory.write("{", to: "rules.d/notes.txt")
        func result() throws -> CommandResult {
            try runCommand(builtProgram("stated"), ["--check-config", path])
        }
        #expect(try result().exitCode == 0)
        try directory.write("{}", to: "rules.d/last.json5")
        let refused = try result()
        let message = "\(directory.path(of: "rules.d")) has more than 1000 files, the limit"
        #expect(refused.exitCode == 2 && refused.errorText.contains(message), "\(refused)")
    }

    /// Each place was looked for from the start of the file, which took a minute.
    @Test func `of very many errors the first are shown, each at its place`() throws {
        let rules = (0..<30_000).map { "{ keys: 'k\($0)', history: 5 }," }
        let result = try check("{ rules: [\n" + rules.joined(separator: "\n") + "\n] }")
        #expect(result.exitCode == 2)
        for number in 1...20 {
            let message = ":\(number + 1):\(14 + "\(number - 1)".count): rules[\(number)].history: "
            #expect(result.errorText.contains(message), "\(number)")
        }
        let shown = result.errorText.split(separator: "\n").filter { $0.contains("].history: ") }
        #expect(shown.count == 20)
    }
}
