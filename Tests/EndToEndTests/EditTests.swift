import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl edit`.
struct EditTests {
    let directory: TemporaryDirectory
    let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        let rule = "{ rules: [ { keys: 'n/', schema: { type: 'number', maximum: 1 } } ] }"
        daemon = try Daemon("--config", directory.write(rule, to: "stated.json5"))
    }

    /// Runs it with a script as the editor, whose last argument is the file.
    private func edit(_ key: String, _ script: String, _ more: String...) throws -> CommandResult {
        try directory.write(script, to: "editor")
        return try Statectl.run(
            ["--socket", daemon.socketPath, "edit", key] + more,
            environment: [
                "VISUAL": "", "EDITOR": "sh '\(directory.path(of: "editor"))'",
                "TMPDIR": directory.path,
            ]
        )
    }

    private func set(_ key: String, _ value: String) throws {
        #expect(try Statectl.run(daemon, "set", key, "--", value).exitCode == 0)
    }

    private func value(_ key: String) throws -> String {
        try Statectl.run(daemon, "get", key, "--raw").text
    }

    /// The files of edits that are left.
    private func kept() throws -> [String] {
        try runCommand("sh", ["-c", "ls '\(directory.path)' | grep '^statectl-' || true"]).lines
    }

    @Test func `what was saved is set, and the file is gone`() throws {
        try set("app/motd.txt", "hello")
        let script = """
            case "$1" in *.txt) ;; *) exit 9 ;; esac
            [ "$(stat -c %a "$1")" = 600 ] || exit 8
            [ "$(od -c "$1" | head -1)" = '0000000   h   e   l   l   o  \\n' ] || exit 7
            printf 'good\\nbye\\n' > "$1"
            """
        let result = try edit("app/motd.txt", script)
        #expect(result.exitCode == 0 && result.text == "set at revision 2\n", "\(result)")
        #expect(try value("app/motd.txt") == "good\nbye")
        #expect(try kept().isEmpty)
    }

    @Test(arguments: [("a", ""), ("a\n", ""), ("{\"x\": 1}", ".json"), ("[1]\n\n", ".json")])
    func `a final newline stays as it was, and JSON is named so`(
        value: String,
        suffix: String
    ) throws {
        try set("k", value)
        let result = try edit(
            "k",
            "case \"$1\" in *XXXX*) exit 9 ;; *.*/*) ;; esac\nsed -i s/1/2/ \"$1\"; echo \"$1\" >&2"
        )
        #expect(result.exitCode == 0)
        let path = try #require(result.errorText.split(separator: "\n").first)
        #expect(suffix.isEmpty ? !path.hasSuffix(".json") : path.hasSuffix(suffix))
        #expect(
            try self.value("k")
                == value.split(separator: "1", omittingEmptySubsequences: false).joined(
                    separator: "2"
                )
        )
    }

    @Test func `an unchanged file changes nothing`() throws {
        try set("k", "v")
        let result = try edit("k", "touch \"$1\"")
        #expect(result.exitCode == 0 && result.text == "unchanged\n")
        #expect(try edit("none", ":").text == "unchanged\n")
        #expect(try edit("k", ":", "--json").text == "{\"revision\":1}\n")
        #expect(try Statectl.run(daemon, "get", "none").exitCode == 1)
        #expect(try Statectl.run(daemon, "history", "k").lines.count == 1)
        #expect(try kept().isEmpty)
    }

    @Test func `an absent key begins empty and is made, if nobody else makes it`() throws {
        let result = try edit("new", "[ -s \"$1\" ] || echo one > \"$1\"", "--json")
        #expect(result.exitCode == 0 && result.text == "{\"revision\":1}\n")
        #expect(try value("new") == "one")
        let statectl = "'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)'"
        let raced = try edit("raced", "echo mine > \"$1\"; \(statectl) set raced theirs")
        #expect(raced.exitCode == 4)
        #expect(try value("raced") == "theirs")
    }

    @Test func `an editor that fails sets nothing`() throws {
        try set("k", "v")
        let failed = try edit("k", "exit 3")
        #expect(
            failed.exitCode == 2
                && failed.errorText.contains("failed with exit code 3; nothing was set")
        )
        #expect(try kept().isEmpty)
        let written = try edit("k", "echo other > \"$1\"; exit 1")
        #expect(written.exitCode == 2)
        let file = try #require(try kept().first)
        #expect(written.errorText.contains("your text is saved in \(directory.path(of: file))\n"))
        #expect(try value("k") == "v")
    }

    @Test func `a conflict keeps what was written, and says where`() throws {
        try set("k", "v")
        let statectl = "'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)'"
        let result = try edit("k", "echo mine > \"$1\"; \(statectl) set k theirs")
        #expect(result.exitCode == 4 && result.text.isEmpty)
        let file = directory.path(of: try #require(try kept().first))
        #expect(
            result.errorText.contains(
                "CONFLICT key 'k' is at revision 2; your text is saved in \(file)"
            )
        )
        #expect(result.errorText.contains("statectl get 'k' | diff - \(file)"))
        #expect(String(decoding: try readFile(file), as: UTF8.self) == "mine\n")
        #expect(try value("k") == "theirs")
    }

    @Test func `what a rule refuses is kept, or edited again by a person at a terminal`() throws {
        try set("n/x", "0.5")
        let refused = try edit("n/x", "echo 7 > \"$1\"")
        #expect(refused.exitCode == 4)
        let file = directory.path(of: try #require(try kept().first))
        #expect(
            refused.errorText.contains(
                "n/x': 7 is above 1 (rule 1, line 1, schema); your text is saved in \(file)"
            )
        )
        #expect(String(decoding: try readFile(file), as: UTF8.self) == "7\n")
        #expect(unlink(file) == 0)

        try directory.write(
            "grep -q 9 \"$1\" && echo 0.75 > \"$1\" || echo 9 > \"$1\"",
            to: "editor"
        )
        let command =
            "printf 'y\\n' | EDITOR=\"sh '\(directory.path(of: "editor"))'\" VISUAL= TMPDIR='\(directory.path)' "
            + "script -qec \"'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)' edit n/x\" /dev/null"
        let again = try runCommand("sh", ["-c", command])
        #expect(again.text.contains("9 is above 1 (rule 1, line 1, schema)"), "\(again)")
        #expect(
            again.text.contains("edit again? [Y/n]") && again.text.contains("set at revision 2")
        )
        #expect(try value("n/x") == "0.75")
        #expect(try kept().isEmpty)
    }

    @Test(arguments: [[0x61, 0x00], [0xFF], [0x1B, 0x5B], [0x7F]] as [[UInt8]])
    func `a value that is no text is refused with a hint`(bytes: [UInt8]) throws {
        _ = try daemon.connect().set(bytes, for: "k")
        let result = try edit("k", "echo x > \"$1\"")
        #expect(result.exitCode == 2 && result.errorText.contains("get KEY --raw > FILE"))
        #expect(try Statectl.run(daemon, "get", "k", "--raw").output == bytes)
    }

    @Test(arguments: ["tree", "metrics"])
    func `a verb that prints no JSON says so`(verb: String) throws {
        let result = try Statectl.run(daemon, verb, "--json")
        #expect(result.exitCode == 2 && result.text.isEmpty)
        #expect(result.errorText.contains("--json' prints"), "\(result)")
    }
}
