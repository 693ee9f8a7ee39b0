import StateClient
import StateTestSupport
import Testing

/// `statectl convert`.
struct ConvertCommandTests {
    private let directory: TemporaryDirectory
    private let daemon: Daemon

    /// Values of before the schema: numbers in percent.
    init() throws {
        directory = try TemporaryDirectory()
        daemon = try Daemon("--config", directory.write("{}", to: "stated.json5"))
        let values = ["audio/a=70", "audio/b=0.5", "audio/c=30", "other=70"]
        let set = ["--socket", daemon.socketPath, "set"] + values
        #expect(try Statectl.run(set).exitCode == 0)
        let rules = "{ rules: [ { keys: 'audio/', schema: { type: 'number', maximum: 1 } } ] }"
        try directory.write(rules, to: "stated.json5")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
    }

    private func convert(_ words: String...) throws -> CommandResult {
        try Statectl.run(["--socket", daemon.socketPath, "convert"] + words)
    }

    private func list() throws -> [String] { try Statectl.run(daemon, "list").lines }

    private static let before = ["audio/a = 70", "audio/b = 0.5", "audio/c = 30", "other = 70"]

    @Test func `values that a rule refuses become what the command prints, in one commit`() throws {
        let done = try convert("/", "--", "awk", "{ print $1 / 100 }")
        let revision = try #require(
            try daemon.connect().status().first { $0.name == "revision" }?.number
        )
        #expect(
            done.lines == [
                "~ audio/a = 0.7\twas 70", "~ audio/c = 0.3\twas 30",
                "0 added, 2 changed, 0 deleted; revision \(revision)",
            ],
            "\(done)"
        )
        let changed = try Statectl.run(daemon, "history", "audio/a").lines.count
        #expect(changed == 2)
        #expect(done.exitCode == 0)
        #expect(try list() == ["audio/a = 0.7", "audio/b = 0.5", "audio/c = 0.3", "other = 70"])
        let again = try convert("/", "--", "awk", "{ print $1 / 100 }")
        #expect(again.text == "nothing changed\n" && again.exitCode == 0)
    }

    @Test func `a dry run shows it and changes nothing`() throws {
        let done = try convert("audio/", "--dry-run", "--", "awk", "{ print $1 / 100 }")
        #expect(done.lines.first == "~ audio/a = 0.7\twas 70")
        #expect(done.lines.last == "0 added, 2 changed, 0 deleted; nothing was changed (--dry-run)")
        #expect(try list() == Self.before)
    }

    @Test func `with --every all of them, and nothing else`() throws {
        #expect(try convert("audio/", "--every", "--", "awk", "{ print $1 / 100 }").exitCode == 0)
        #expect(try list() == ["audio/a = 0.7", "audio/b = 0.005", "audio/c = 0.3", "other = 70"])
    }

    @Test(
        arguments: [
            ("awk '{ print $1 / 50 }'", ["audio/a"], "is refused"),
            ("[ $STATED_KEY = audio/a ] || exit 3; echo 1", ["audio/c"], "failed with exit code 3"),
            ("true", ["audio/a", "audio/c"], "printed nothing"),
            ("kill -9 $$", ["audio/a", "audio/c"], "was ended by signal 9"),
        ]
    )
    func `one that does not fit changes nothing, and each is named`(
        script: String,
        keys: [String],
        reason: String
    ) throws {
        let done = try convert("audio/", "--", "sh", "-c", script)
        #expect(done.exitCode == 4)
        let lines = done.errorText.split(separator: "\n")
        #expect(lines.count == keys.count + 1, "\(done)")
        for (key, line) in zip(keys, lines) {
            #expect(line.contains("key '\(key)': ") && line.contains(reason), "\(line)")
        }
        #expect(lines.last?.hasSuffix("not converted: \(keys.count); nothing was changed") == true)
        #expect(try list() == Self.before)
    }

    @Test func `a value that somebody else changes meanwhile is converted again`() throws {
        let mark = directory.path(of: "mark")
        let other = "\(builtProgram("statectl")) --socket \(daemon.socketPath) persist other"
        let set = "\(builtProgram("statectl")) --socket \(daemon.socketPath) set audio/c=0.9"
        let script =
            "[ -e \(mark) ] || { touch \(mark); \(other); \(set); } >&2; awk '{ print $1 / 100 }'"
        let done = try convert("audio/", "--", "sh", "-c", script)
        #expect(done.exitCode == 0, "\(done)")
        #expect(try list() == ["audio/a = 0.7", "audio/b = 0.5", "audio/c = 0.9", "other = 70"])
    }

    @Test func `a value keeps its time, and a large one goes through the command`() throws {
        #expect(try Statectl.run(daemon, "expire", "audio/b", "1h").exitCode == 0)
        #expect(try convert("audio/b", "--every", "--", "sh", "-c", "echo 0.25").exitCode == 0)
        let left = try Statectl.run(daemon, "ttl", "audio/b").text
        #expect(left.contains("59m") || left.contains("1h"), "\(left)")
        let large = String(repeating: "large ", count: 100_000)
        let set = ["--socket", daemon.socketPath, "set", "other", "-"]
        #expect(try Statectl.run(set, input: Array(large.utf8)).exitCode == 0)
        #expect(try convert("other", "--every", "--", "sed", "s/large/huge/g").exitCode == 0)
        let huge = large.replacing("large", with: "huge")
        #expect(try Statectl.run(daemon, "get", "other").text == huge + "\n")
    }

    @Test func `without a command, or with one that is not there, nothing runs`() throws {
        #expect(try convert("audio/").exitCode == 2)
        let absent = try convert("audio/", "--", "no-such-program")
        #expect(absent.exitCode == 2)
        #expect(absent.errorText.contains("convert: there is no program 'no-such-program'"))
    }
}
