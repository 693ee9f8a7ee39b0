import Glibc
import StateClient
import StateModel
import StateTestSupport
import Testing

/// What hands type: names of verbs that other programs have, and letters.
final class StatectlNameTests {
    private let daemon: Daemon
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        daemon = try Daemon()
        for (key, value) in [("d/a", "1"), ("d/b", "2"), ("e", "3")] {
            try #require(try statectl("set", key, value).exitCode == 0)
        }
    }

    private func statectl(_ words: String...) throws -> CommandResult {
        try Statectl.run(["--socket", daemon.socketPath] + words)
    }

    @Test(arguments: [
        (["ls", "d/"], ["list", "d/"]), (["cat", "e"], ["get", "e"]),
        (["keys", "d/"], ["list", "--keys", "d/"]), (["get", "-r", "d/"], ["list", "d/"]),
        (["get", "--prefix", "d/"], ["list", "d/"]), (["ls", "-l"], ["list", "--long"]),
        (["get", "-v", "e"], ["get", "--long", "e"]),
        (["get", "e", "-o", "json"], ["get", "e", "--json"]),
        (["-V"], ["--version"]), (["-v"], ["--version"]), (["version"], ["--version"]),
        (["set", "-h"], ["set", "--help"]), (["rm", "-h"], ["delete", "--help"]),
        (["del", "-n", "-r", "d/"], ["delete", "--dry-run", "d/"]),
        (["export", "d/", "--recursive"], ["export", "d/"]),
    ])
    func `other names do the same`(other: [String], own: [String]) throws {
        let socket = ["--socket", daemon.socketPath]
        let (typed, expected) = (try Statectl.run(socket + other), try Statectl.run(socket + own))
        #expect(expected.exitCode == 0 && !expected.output.isEmpty)
        #expect(typed.description == expected.description)
    }

    @Test func `put sets, rm and del delete, and info is the status`() throws {
        #expect(try statectl("put", "f", "4").exitCode == 0)
        #expect(try statectl("get", "f").text == "4\n")
        #expect(try statectl("rm", "f").text == "1\n")
        #expect(try statectl("del", "-r", "d/").text == "2\n")
        #expect(try statectl("info").text.contains("socket:"))
    }

    @Test(arguments: [
        ("grep", "list"), ("read", "get"), ("rename", "mv"), ("copy", "cp"), ("undo", "revert"),
        ("touch", "set"), ("dump", "export"), ("has", "exists"), ("remove", "delete"),
        ("tail", "watch"), ("config", "check-config"),
    ])
    func `a verb of another program leads to the one that means the same`(
        word: String,
        verb: String
    ) throws {
        let result = try statectl(word, "d/")
        #expect(result.exitCode == 2)
        #expect(result.errorText == "statectl: unknown verb '\(word)'; did you mean '\(verb)'?\n")
    }

    @Test func `restore says how`() throws {
        let result = try statectl("restore", "x")
        #expect(result.exitCode == 2 && result.errorText.contains("stated --restore FILE"))
    }

    @Test(arguments: [
        ["delete", "-r", "d"], ["rm", "--prefix", "d/", "e"], ["watch", "-r", "d"],
    ])
    func `a prefix without its slash is refused`(words: [String]) throws {
        let result = try Statectl.run(["--socket", daemon.socketPath] + words)
        #expect(result.exitCode == 2 && result.errorText.contains("is no prefix"), "\(result)")
        #expect(try statectl("list", "--count").text == "3\n")
    }

    @Test(arguments: ["-5", "-0.5", "-.5", "-10m"])
    func `a number with a sign is a value`(number: String) throws {
        #expect(try statectl("set", "e", number).exitCode == 0)
        #expect(try statectl("get", "e").text == number + "\n")
    }

    @Test func `a word with a dash is a value behind two dashes`() throws {
        #expect(try statectl("set", "--", "-n", "-x").exitCode == 0)
        #expect(try statectl("get", "--", "-n").text == "-x\n")
        #expect(
            try statectl("get", "e", "-o", "yaml").errorText
                == "statectl: -o takes json, not 'yaml'\n"
        )
    }

    @Test func `help fits a screen, and has what people use`() throws {
        let lines = try Statectl.run(["--help"]).text.split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        #expect(lines.count <= 25 && lines.allSatisfy { $0.count <= 80 })
        let verbs = Set(VerbRow.all.map(\.verb)).subtracting(["complete", "credential"])
        let words = Set(lines.flatMap { $0.split(separator: " ").map(String.init) })
        #expect(verbs.subtracting(words) == [])
        #expect(!words.contains("complete") && !words.contains("credential"))
    }

    // MARK: New verbs

    @Test func `exists says by its exit code whether all are there`() throws {
        let cases = [(["e"], 0), (["e", "d/a"], 0), (["d/"], 0), (["d"], 1), (["e", "none"], 1)]
        for (keys, code) in cases {
            let result = try Statectl.run(["--socket", daemon.socketPath, "exists"] + keys)
            #expect(result.exitCode == code && result.description == "exit \(code)\n", "\(keys)")
        }
        #expect(try statectl("exists", "e", "d/", "x", "--json").text == "{\"count\":2}\n")
    }

    @Test func `cp and mv are one commit each`() throws {
        let watch = try Statectl.start(daemon, "watch", "/", "--json", "--count", "6")
        #expect(try watch.nextLine().contains("ready"))
        #expect(try statectl("cp", "d/", "f/").text == "2\n")
        #expect(try statectl("mv", "f/", "g/").text == "2\n")
        let revisions = try watch.finish().lines.map { $0.split(separator: ",")[0] }
        #expect(Set(revisions.prefix(2)).count == 1 && Set(revisions.dropFirst(2)).count == 1)
        #expect(
            try statectl("list").lines == [
                "d/a = 1", "d/b = 2", "e = 3", "g/a = 1", "g/b = 2",
            ]
        )
        #expect(try statectl("mv", "e", "h").text == "1\n")
        #expect(try statectl("get", "h").text == "3\n")
        #expect(try statectl("exists", "e").exitCode == 1)
    }

    @Test func `what is renamed keeps its time, and the history has what it replaced`() throws {
        #expect(try statectl("expire", "e", "1h").exitCode == 0)
        let before = try #require(try daemon.connect().entry(for: "e")?.expires)
        #expect(try statectl("mv", "e", "d/a").text == "1\n")
        let after = try #require(try daemon.connect().entry(for: "d/a")?.expires)
        #expect(abs(after - before) < 5_000)
        #expect(try statectl("history", "d/a").lines.count == 2)
        #expect(try statectl("history", "e").lines.count == 3)
        #expect(try statectl("ttl", "d/b").text == "never\n")
        #expect(try statectl("cp", "d/b", "c").text == "1\n")
        #expect(try statectl("ttl", "c").text == "never\n")
    }

    @Test func `mv and cp refuse what would lose a value`() throws {
        for verb in ["mv", "cp"] {
            let cases = [
                (["none", "x"], 1, "there is no key named 'none'"),
                (["n/", "x/"], 1, "no key below"),
                (["d/", "d/x/"], 2, "inside"), (["d/x/", "d/"], 2, "inside"),
                (["e", "e"], 2, "same"),
                (["e", "x/"], 2, "two keys"), (["d/", "x"], 2, "two keys"),
                (["e", "d/a", "--if-absent"], 4, "'d/a' is there already"),
            ]
            for (words, code, part) in cases {
                let result = try Statectl.run(["--socket", daemon.socketPath, verb] + words)
                #expect(result.exitCode == code, "\(verb) \(words): \(result)")
                #expect(result.errorText.contains(part), "\(verb) \(words): \(result)")
            }
            let dry = try statectl(verb, "e", "d/a", "--dry-run")
            #expect(dry.text.contains("~ d/a = 3\twas 1"), "\(dry)")
        }
        let lines = ["d/a = 1", "d/b = 2", "e = 3"]
        #expect(try statectl("list").lines == lines)
    }

    @Test func `a value that ends with a process is not renamed`() throws {
        let service = try Statectl.start(daemon, "service", "p", "v", "--", "sleep", "60")
        #expect(try statectl("wait", "p", "--timeout", "20s").exitCode == 0)
        let result = try statectl("mv", "p", "q")
        #expect(
            result.exitCode == 4 && result.errorText.contains("ends with its process"),
            "\(result)"
        )
        service.signal(SIGTERM)
        _ = service.wait()
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `completion prints what the shell reads`(shell: String) throws {
        let name = shell == "zsh" ? "_statectl" : "statectl.\(shell)"
        let file = packageRoot + "/Sources/statectl/Completion/Scripts/" + name
        #expect(try Statectl.run(["completion", shell]).output == readFile(file))
        #expect(try Statectl.run(["completion", "csh"]).errorText.contains("bash, zsh or fish"))
    }

    // MARK: A watch that is there

    @Test func `a set after the line of --ready-fd is never missed`() throws {
        let socket = "--socket '\(daemon.socketPath)'"
        let program = "'\(builtProgram("statectl"))' \(socket)"
        let script = """
            mkfifo ready
            \(program) watch w --count 1 --timeout 20s --ready-fd 3 3>ready >out &
            read -r revision <ready && [ "$revision" -gt 0 ] || exit 9
            \(program) set w $1 && wait $! && cat out
            rm ready
            """
        for round in 1...20 {
            let result = try runCommand(
                "sh",
                ["-c", "cd '\(directory.path)'; \(script)", "sh", "\(round)"]
            )
            #expect(
                result.exitCode == 0 && result.text.hasSuffix("\tset\tw\t\(round)\n"),
                "\(result)"
            )
        }
    }

    @Test func `a descriptor that is not open is refused, and gets nothing`() throws {
        let result = try statectl("watch", "w", "--timeout", "1s", "--ready-fd", "7")
        #expect(result.exitCode == 2)
        #expect(
            result.errorText == "statectl: --ready-fd 7: no descriptor of that number is open\n"
        )
    }

    @Test func `the first line in JSON says that the watch is there`() throws {
        let watch = try Statectl.start(
            daemon,
            "watch",
            "d/",
            "--json",
            "--snapshot",
            "--count",
            "2"
        )
        let lines = try watch.finish().lines
        #expect(lines.count == 3 && lines[0].hasSuffix("\"op\":\"ready\"}"))
    }
}
