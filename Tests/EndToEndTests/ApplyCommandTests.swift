import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl apply`.
struct ApplyCommandTests {
    let directory: TemporaryDirectory
    let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        let rules = """
            { rules: [ { keys: "audio/volume", schema: { type: "number", maximum: 1 } },
                       { keys: "fixed", readonly: true },
                       { keys: "brief", expire: "1h" } ] }
            """
        daemon = try Daemon("--config", directory.write(rules, to: "stated.json5"))
    }

    private func apply(_ text: String, _ options: String...) throws -> CommandResult {
        try Statectl.run(
            ["--socket", daemon.socketPath, "apply", "-"] + options,
            input: Array(text.utf8)
        )
    }

    private func list() throws -> [String] { try Statectl.run(daemon, "list").lines }

    private func revision() throws -> Int64? {
        try daemon.connect().status().first { $0.name == "revision" }?.number
    }

    @Test func `keys become what the file says, in one commit, and then nothing changes`() throws {
        _ = try Statectl.run(daemon, "set", "audio/volume=0.5", "audio/muted=yes", "z=kept")
        let before = try #require(try revision())
        let path = try directory.write(
            """
            // The sound of this machine.
            {
              "system/hostname": "box",
              "audio/": { volume: .70, device: { name: "hw:0", "card": 1 }, "eq/": { bass: 2 }, muted: null,
                          never: null, list: [1, "a"], on: true, text: "a\\nb", "*": "a glob is a name" },
            }
            """,
            to: "state.json5"
        )
        let done = try Statectl.run(daemon, "apply", path)
        #expect(
            done.text == """
                + audio/* = a glob is a name
                + audio/device = {"card":1,"name":"hw:0"}
                + audio/eq/bass = 2
                + audio/list = [1,"a"]
                - audio/muted = yes
                + audio/on = true
                + audio/text = a\\nb
                ~ audio/volume = 0.70\twas 0.5
                + system/hostname = box
                7 added, 1 changed, 1 deleted; revision \(before + 1)

                """
        )
        #expect(done.exitCode == 0 && done.error.isEmpty)
        #expect(try revision() == before + 1)
        #expect(try Statectl.run(daemon, "get", "audio/text").text == "a\nb\n")
        #expect(try list().contains("z = kept"))
        #expect(try Statectl.run(daemon, "apply", path).text == "nothing changed\n")
        let json = try Statectl.run(daemon, "apply", path, "--json").text
        #expect(json == "{\"count\":0}\n")
        #expect(try revision() == before + 1)
    }

    @Test func `a plain JSON file works, and each change is an object`() throws {
        _ = try Statectl.run(daemon, "set", "a=1", "b=2")
        let done = try apply(#"{"a": "2", "b": null, "c": {"x": "é"}}"#, "--json")
        #expect(
            done.lines.dropLast() == [
                #"{"op":"set","key":"a","value":"2","previous":"1"}"#,
                #"{"op":"delete","key":"b","previous":"2"}"#,
                #"{"op":"set","key":"c","value":"{\"x\":\"é\"}","previous":null}"#,
            ]
        )
        #expect(done.lines.last == "{\"revision\":\(try #require(try revision())),\"count\":3}")
    }

    @Test func `prune deletes what the file lacks below its prefixes, and nothing else`() throws {
        _ = try Statectl.run(daemon, "set", "a/b/1=1", "a/b/2=2", "a/c=3", "ab=4", "b/x=5")
        let text = #"{ "a/": { "b/": { "1": "1" } }, "b/": {}, ab: "4" }"#
        #expect(try apply(text).text == "nothing changed\n")
        let dry = try apply(text, "--prune", "--dry-run")
        let lines = "- a/b/2 = 2\n- a/c = 3\n- b/x = 5\n"
        let counts = "0 added, 0 changed, 3 deleted; "
        #expect(dry.text == lines + counts + "nothing was changed (--dry-run)\n")
        #expect(try list().count == 5)
        #expect(try apply(text, "--prune").text.hasPrefix(lines + counts + "revision "))
        #expect(try list() == ["a/b/1 = 1", "ab = 4"])
        #expect(try apply(text, "--prune").text == "nothing changed\n")
    }

    @Test func `prune of everything must be asked for`() throws {
        _ = try Statectl.run(daemon, "set", "a=1", "b=2")
        let refused = try apply(#"{ "/": { a: "1" } }"#, "--prune")
        #expect(refused.exitCode == 2 && refused.errorText.contains("--prune --all"))
        #expect(try apply(#"{ a: "1" }"#, "--prune").errorText.contains("--prune needs a prefix"))
        #expect(try apply(#"{ a: "1" }"#, "--all").errorText.contains("--all needs --prune"))
        #expect(try apply(#"{ "/": { a: "1" } }"#, "--prune", "--all").lines.first == "- b = 2")
    }

    @Test(arguments: [[], ["--dry-run"]])
    func `a change that a rule refuses changes nothing`(options: [String]) throws {
        _ = try Statectl.run(daemon, "set", "a=1")
        let before = try revision()
        let text = Array(#"{ a: "2", "audio/": { volume: 5 }, b: "3" }"#.utf8)
        let arguments = ["--socket", daemon.socketPath, "apply", "-"]
        let refused = try Statectl.run(arguments + options, input: text)
        #expect(refused.exitCode == 4 && refused.text.isEmpty)
        #expect(refused.errorText.contains("REJECTED key 'audio/volume': 5 is above 1"))
        let other = try Statectl.run(arguments + options, input: Array(#"{ fixed: "x" }"#.utf8))
        #expect(other.exitCode == 4 && other.errorText.contains("'fixed'"))
        #expect(try list() == ["a = 1"])
        #expect(try revision() == before)
    }

    @Test func `all that is wrong with a file is said with its place`() throws {
        let refused = try apply(
            """
            { "a": "1",
              "b/": 5,
              "c/": { "d": "1", "d": "2", "e/": { f: 1 }, "e/f": 2 },
              "": "no key",
            }
            """
        )
        #expect(refused.exitCode == 2 && refused.text.isEmpty)
        for part in [
            "standard input:2:3: expected an object with keys and values, because a name that ends in /",
            "standard input:3:21: [\"c/\"].d: this option appears twice", "3 |   \"c/\"",
            "the key 'c/e/f' is in the file already", "a key has at least 1 byte",
            "nothing was changed",
        ] { #expect(refused.errorText.contains(part), "\(part): \(refused.errorText)") }
        #expect(try apply("{ a: 1").errorText.contains("standard input:1:"))
        #expect(try apply("[1]").errorText.contains("standard input:1:1: expected an object"))
        #expect(try Statectl.run(daemon, "apply", "/no/such/file").exitCode == 2)
        #expect(try list().isEmpty)
    }

    @Test func `more keys than a transaction of others may have are one commit of the owner`()
        throws
    {
        let members = (0..<20_000).map { "\"\($0)\": \($0)" }.joined(separator: ",")
        let before = try revision() ?? 0
        let done = try apply("{ \"k/\": { \(members) } }", "--prune")
        #expect(done.lines.last == "20000 added, 0 changed, 0 deleted; revision \(before + 1)")
        #expect(try apply("{ \"k/\": { \(members) } }", "--prune").text == "nothing changed\n")
    }

    @Test func `at the revision of the commit the keys that were equal are still equal`() throws {
        let client = try daemon.connect()
        try client.set(Array("1".utf8), for: "b")
        let isDone = StateLock(false)
        let thread = WorkerThread(name: "test-writer")
        thread.start { [path = daemon.socketPath] in
            let writer = try? Client(socket: path)
            while !isDone.withLock({ $0 }) {
                for value in ["2", "1"] {
                    _ = try? writer?.set(Array(value.utf8), for: "b")
                    usleep(3_000)
                }
            }
        }
        defer {
            isDone.withLock { $0 = true }
            thread.join()
        }
        for number in 0..<40 {
            let text = "{ a: \"\(number)\", b: \"1\" }"
            #expect(try apply(text, "--dry-run").exitCode == 0)
            let done = try apply(text)
            guard done.exitCode == 0 else { continue }
            let last = try #require(done.lines.last?.split(separator: " ").last)
            let entry = try client.entry(for: "b", at: Int64(last))
            #expect(entry?.value == Array("1".utf8))
        }
    }

    @Test func `a value that expires is set without a time, unless its rule gives one`() throws {
        _ = try Statectl.run(daemon, "set", "a=1", "--ttl", "1h")
        _ = try Statectl.run(daemon, "set", "brief=1")
        let text = #"{ a: "1", brief: "1" }"#
        let done = try apply(text)
        #expect(done.lines.first == "~ a = 1\twas 1" && done.lines.count == 2)
        #expect(try daemon.connect().lifetime(of: "a") == .unlimited)
        #expect(try daemon.connect().lifetime(of: "brief") != .unlimited)
        #expect(try apply(text).text == "nothing changed\n")
    }

    @Test func `steps that one request cannot hold are refused before they are sent`() throws {
        let client = try daemon.connect()
        let error = #expect(throws: StateError.self) {
            try client.apply(Array(repeating: .delete("a"), count: 524_288))
        }
        #expect(error?.code == .tooBig)
        let sentence = "cannot hold 524288 steps; the limit is about 52428"
        #expect(error?.message.contains(sentence) == true)
        try client.ping()
    }

    @Test func `writers of the same keys do not mix with it`() throws {
        let client = try daemon.connect()
        _ = try client.set(Array("0".utf8), for: "a")
        let steps: [Client.Step] = [.check("a", revision: 0), .set("a", Array("x".utf8))]
        for isDryRun in [true, false] {
            let error = #expect(throws: StateError.self) {
                try client.apply(steps, isDryRun: isDryRun)
            }
            #expect(error?.code == .conflict)
        }
        let entry = try #require(try client.entry(for: "a"))
        let good: [Client.Step] = [
            .check("a", revision: entry.revision), .delete("a"), .set("b", []),
            .check("c", revision: 0),
        ]
        #expect(try client.apply(good, isDryRun: true).count == 2)
        #expect(try client.entry(for: "a") == entry)
        #expect(try client.apply(good).count == 2)
        #expect(try client.entries(for: ["a", "b", "c"]).map { $0?.value } == [nil, [], nil])
    }
}
