import StateModel
import StateTestSupport
import Testing

/// What holds for every verb of `statectl`.
struct VerbTableTests {
    /// All verbs: those of people, and those of programs.
    private func verbs() throws -> Set<String> {
        let lines = try Statectl.run(["help", "verbs"]).lines.filter {
            $0.hasPrefix("  ") && !$0.hasPrefix("   ")
        }
        let names = lines.map { String($0.split(separator: " ")[0]) }
        return Set(names + ["complete", "credential"])
    }

    /// Whether the help of a verb lists the option, as a line of its own.
    private func hasDryRun(_ help: String) -> Bool { help.contains("\n  --dry-run ") }

    @Test func `every verb has a row`() throws {
        #expect(Set(VerbRow.all.map(\.verb)) == (try verbs()))
    }

    // MARK: Descriptors that the caller has closed

    /// Without /dev/null at its place, the daemon's socket would get the number, and what is printed
    /// would be commands.
    @Test func `with standard output closed nothing that is stored runs as a command`() throws {
        let store = try VerbStore()
        for row in VerbRow.all {
            try store.restore()
            let open = try store.run(row)
            try store.restore()
            let closed = try store.run(row, as: #"exec "$@" >&-"#)
            let expected = open.output.isEmpty ? open.exitCode : 5
            #expect(closed.exitCode == expected, "\(row): \(closed)")
            let names = closed.errorText.contains("it is closed")
            #expect(names == !open.output.isEmpty, "\(row): \(closed)")
            #expect(try store.value(of: "victim") == "precious", "\(row)")
        }
    }

    @Test func `with standard error closed no message is a command`() throws {
        let store = try VerbStore()
        for row in VerbRow.all {
            try store.restore()
            let open = try store.run(row)
            try store.restore()
            let closed = try store.run(row, as: #"exec "$@" 2>&-"#)
            #expect(closed.exitCode == open.exitCode, "\(row): \(closed)")
            #expect(try store.value(of: "victim") == "precious", "\(row)")
        }
        // A message is written while the connection is there.
        let refused = try store.run(
            ["set", "victim", "x", "--if-value", "y"],
            as: #"exec "$@" 2>&-"#
        )
        #expect(refused.exitCode == 4)
        #expect(try store.value(of: "victim") == "precious")
    }

    @Test func `with standard input closed what reads it says so, and ends`() throws {
        let store = try VerbStore()
        for row in VerbRow.all {
            try store.restore()
            let open = try store.run(row)
            try store.restore()
            let closed = try store.run(row, as: #"exec timeout 20 "$@" <&-"#)
            #expect(
                closed.exitCode == (row.input == nil ? open.exitCode : 2),
                "\(row): \(closed)"
            )
        }
        let set = try store.run(["set", "victim", "-"], as: #"exec "$@" <&-"#)
        #expect(set.errorText == "statectl: cannot read standard input: it is closed\n")
        #expect(try store.value(of: "victim") == "precious")
    }

    @Test func `a command of statectl has no descriptor of the daemon`() throws {
        let store = try VerbStore()
        for verb in ["lock l", "elect e", "service s v", "watch victim --snapshot --count 1"] {
            let words = verb.split(separator: " ").map(String.init)
            let result = try store.run(
                words + ["--", "sh", "-c", "echo DEL victim; echo DEL victim >&2"],
                as: #"exec "$@" >&- 2>&-"#
            )
            #expect(result.output.isEmpty && result.error.isEmpty, "\(verb): \(result)")
            #expect(try store.value(of: "victim") == "precious", "\(verb)")
        }
    }

    @Test(arguments: ["stated", "stated-etcd", "statebench"])
    func `a program that cannot print fails`(program: String) throws {
        for end in [">&-", ">/dev/full"] {
            let script = #"exec "$@" "# + end
            let result = try runCommand(
                "sh",
                ["-c", script, "sh", builtProgram(program), "--help"]
            )
            #expect(result.exitCode == (program == "statebench" ? 1 : 5), "\(result)")
            #expect(result.errorText.contains("standard output: "), "\(result)")
        }
        let script = #""$@" --help | true; exit ${PIPESTATUS[0]}"#
        let result = try runCommand("bash", ["-c", script, "bash", builtProgram(program)])
        #expect(result.exitCode == 0, "nobody reads it: \(result)")
    }

    @Test func `a daemon without standard descriptors serves, and its store is whole`() throws {
        let daemon = try Daemon([], launcher: ["sh", "-c", #"exec "$0" "$@" <&- >&- 2>&-"#])
        let set = try Statectl.run(daemon, "set", "k", "v")
        #expect(set.exitCode == 0, "\(set)")
        // What it logs goes nowhere.
        #expect(try Statectl.run(daemon, "reload").exitCode != 0)
        #expect(try Statectl.run(daemon, "get", "k").text == "v\n")
        try daemon.stop()
        let check = try runCommand(builtProgram("stated"), ["--check", "--data", daemon.dataPath])
        #expect(check.exitCode == 0, "\(check)")
    }

    // MARK: Words that begin with a dash

    /// `delete -n d/` is a dry run in every other tool.
    @Test func `a word with a dash that is no option changes nothing`() throws {
        let store = try VerbStore()
        let before = (try store.revision(), try store.keyCount())
        for row in VerbRow.all {
            let help = try Statectl.run([row.verb, "--help"]).text
            let words = ["-i", "-rf", "-nn", "--dryrun", "-Z=1"]
            let more = hasDryRun(help) ? [] : ["-n"]
            for word in words + more {
                for place in 0...1 where place <= row.arguments.count {
                    // Behind -- everything is an operand.
                    guard row.arguments.first != "--" || place == 0 else { continue }
                    var arguments = row.arguments
                    arguments.insert(word, at: place)
                    let result = try store.run([row.verb] + arguments, input: row.input ?? "")
                    let call = ([row.verb] + arguments).joined(separator: " ")
                    #expect(result.exitCode == 2, "\(call): \(result)")
                    #expect(result.output.isEmpty, "\(call): \(result)")
                    let name = word.prefix { $0 != "=" }
                    #expect(
                        result.errorText.contains("unknown option '\(name)'"),
                        "\(call): \(result)"
                    )
                }
            }
        }
        #expect((try store.revision(), try store.keyCount()) == before)
    }

    @Test func `-h is help, and -n is a dry run`() throws {
        let store = try VerbStore()
        let before = (try store.revision(), try store.keyCount())
        for row in VerbRow.all {
            let help = try store.run([row.verb] + row.arguments.prefix { $0 != "--" } + ["-h"])
            #expect(help.exitCode == 0, "\(row): \(help)")
            #expect(help.text.hasPrefix("usage: statectl \(row.verb)"), "\(row)")
            guard hasDryRun(help.text) else { continue }
            let result = try store.run([row.verb, "-n"] + row.arguments, input: row.input ?? "")
            #expect([0, 1].contains(result.exitCode), "\(row): \(result)")
        }
        #expect((try store.revision(), try store.keyCount()) == before)
    }
}
