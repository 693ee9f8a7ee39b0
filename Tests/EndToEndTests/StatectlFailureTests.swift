import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

struct StatectlFailureTests {
    @Test(arguments: [
        ([], "no verb"),
        (["gte", "k"], "'get'"),
        (["statuss"], "'status'"),
        (["get"], "usage: statectl get KEY"),
        (["ttl", "a", "b"], "usage: statectl ttl KEY"),
        (["get", "k", "--jsn"], "'--json'"),
        (["get", "k", "--when", "3"], "unknown option '--when' of 'get'"),
        (["set", "k", "v", "--ttl", "soon"], "--ttl takes a time above 0 with its unit"),
        (["set", "k", "v", "--if-absent", "--if-present"], "one --if-"),
        (["set", "k", "v", "--if-revision", "x"], "--if-revision takes a number"),
        (["set", "k", "v", "--if-revision"], "--if-revision needs a value"),
        (["set", "k", "v", "--raw=yes"], "--raw takes no value"),
        (["delete"], "usage: statectl delete"),
        (["delete", "/"], "--all"),
        (["delete", "a/", "--all"], "--all"),
        (["list", "--keys", "--count"], "one of --keys"),
        (["watch"], "usage: statectl watch"),
        (["watch", "a/", "--count", "0"], "--count takes a number"),
        (["watch", "a/", "--timeout", "soon"], "--timeout takes a time"),
        (["watch", "a/", "--timeout", "5"], "--timeout takes a time with its unit"),
        (["lock", "a", "--wait", "5", "--", "true"], "--wait takes a time with its unit"),
        (["get", "a", "--raw", "--long"], "get: --raw prints only the value"),
        (["get", "a", "--raw", "--json"], "get: --raw prints only the value"),
        (["get", "a", "--system", "--user"], "give only one of --socket, --system and --user"),
        (["watch", "a/", "--", "/no/such/command"], "there is no program '/no/such/command'"),
        (["watch", "a/", "--", "no-such-command"], "there is no program 'no-such-command'"),
        (["watch", "a/", "--time", "--", "true"], "watch: --time with a command needs --json"),
        (["metrics", "--textfile", "-"], "metrics: --textfile takes the name of a file"),
        (["watch", "a/", "--"], "no command"),
        (["watch", "a/", "--previous", "--", "cat"], "--json"),
        (["import", "-", "--prefix", "kernel"], "'kernel/'"),
        (["import", "/none/such"], "/none/such cannot be opened"),
        (["--socket"], "--socket needs a value"),
        (["--socket", "/" + String(repeating: "x", count: 107), "status"], "107"),
        (["get", "a/"], "ends in '/'"),
        (["get", ""], "at least 1 byte"),
        (["set", "a\nb", "v"], "control character"),
        (["list", "a\u{1}"], "control character"),
    ])
    func `what makes no sense exits 2 and names it`(arguments: [String], part: String) throws {
        let result = try Statectl.run(arguments)
        #expect(result.exitCode == 2)
        #expect(result.output.isEmpty)
        #expect(result.errorText.contains(part), "\(result)")
        #expect(result.errorText.hasPrefix("statectl: "))
    }

    @Test func `no daemon exits 3 and names the path that was tried`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "none")
        for environment in [[:], ["STATED_SOCKET": path]] {
            let option = environment.isEmpty ? ["--socket", path] : []
            let result = try Statectl.run(option + ["status"], environment: environment)
            #expect(result.exitCode == 3)
            #expect(result.errorText.contains(path))
        }
    }

    @Test func `what is no socket, and what may not be connected to, exits 3`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("", to: "file")
        #expect(try Statectl.run(["--socket", path, "status"]).exitCode == 3)
        let daemon = try Daemon()
        chmod(daemon.directory.path, 0o000)
        defer { chmod(daemon.directory.path, 0o700) }
        // Root may go anywhere, and is somebody else for this, who may not see where the build is.
        let open = try TemporaryDirectory()
        chmod(open.path, 0o755)
        let statectl = open.path(of: "statectl")
        _ = try runCommand("cp", [builtProgram("statectl"), statectl])
        let isRoot = geteuid() == 0
        let command = (isRoot ? ["--reuid=65534", "--clear-groups"] : []) + [statectl]
        let result = try runCommand(
            isRoot ? "setpriv" : "env",
            command + ["--socket", daemon.socketPath, "get", "k"]
        )
        #expect(result.exitCode == 3)
        #expect(result.errorText.contains("no permission to connect to \(daemon.socketPath)"))
    }

    @Test func `a value over the limit exits 4 and changes nothing`() throws {
        let daemon = try Daemon()
        let value = String(repeating: "x", count: 9 << 20)
        let result = try Statectl.run(daemon, "set", "k", "-", input: value)
        #expect(result.exitCode == 4)
        #expect(result.errorText.contains("TOOBIG"))
        #expect(try Statectl.run(daemon, "get", "k").exitCode == 1)
    }

    @Test(arguments: [
        ("NOSPACE", 5), ("READONLY", 5), ("COMPACTED", 5), ("NOPERM", 4), ("LIMIT", 4),
    ])
    func `what the daemon refuses has the exit code of its word`(
        word: String,
        exitCode: Int
    ) throws {
        let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
        let server = try TranscriptServer(
            .receive(get.utf8.count),
            .send("-\(word) because\r\n")
        )
        let result = try Statectl.run(["--socket", server.path, "get", "k"])
        #expect(Int(result.exitCode) == exitCode)
        #expect(result.errorText == "statectl: \(word) because\n")
        _ = server.finish()
    }

    @Test func `a write whose reply is lost exits 6, a read 3`() throws {
        let writer = try TranscriptServer(.receive(40))
        let write = try Statectl.run(["--socket", writer.path, "set", "k", "v"])
        #expect(write.exitCode == 6)
        #expect(write.errorText.contains("outcome is unknown"))
        let reader = try TranscriptServer(.receive(10))
        #expect(try Statectl.run(["--socket", reader.path, "get", "k"]).exitCode == 3)
        _ = (writer.finish(), reader.finish())
    }

    @Test func `a reader that goes away is success`() throws {
        let daemon = try Daemon()
        let lines = (0..<20_000).map { "key/\($0) = \($0)\n" }.joined()
        _ = try Statectl.run(daemon, "import", "-", input: lines)
        let command = "'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)'"
        let shell = "\(command) list | head -1; echo ${PIPESTATUS[0]}"
        let result = try runCommand("bash", ["-c", shell])
        #expect(result.lines == ["key/0 = 0", "0"])
        #expect(result.error.isEmpty)
    }

    @Test func `an output that takes nothing is told`() throws {
        let daemon = try Daemon()
        let command = "'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)'"
        let result = try runCommand("bash", ["-c", "\(command) incr n > /dev/full"])
        // Not the code of a command that did nothing: a script may repeat that.
        #expect(result.exitCode == 5)
        #expect(result.errorText.contains("standard output: No space left on device; what the"))
        #expect(try daemon.connect().value(for: "n") == Array("1".utf8))
    }
}

struct StatectlHelpTests {
    /// In an order in which their examples follow each other.
    private static let verbs = VerbRow.all.map(\.verb).reduce(into: [String]()) { verbs, verb in
        if !verbs.contains(verb) { verbs.append(verb) }
    }

    @Test(arguments: [["--help"], ["-h"], ["--help", "--json"], ["help"]])
    func `help is asked for in several ways`(arguments: [String]) throws {
        let result = try Statectl.run(arguments)
        #expect(result.exitCode == 0)
        #expect(result.text.hasPrefix("usage: statectl VERB"))
    }

    @Test(arguments: verbs)
    func `a verb's help has its usage and examples`(verb: String) throws {
        let result = try Statectl.run([verb, "--help"])
        #expect(result.exitCode == 0)
        #expect(result.text.hasPrefix("usage: statectl \(verb)"))
        #expect(result.text.contains("\nexamples:\n  "))
    }

    @Test func `version is told`() throws {
        let result = try Statectl.run(["--version"])
        #expect(result.exitCode == 0)
        #expect(result.text.hasPrefix("statectl "))
    }

    /// Every example line of every help, but for those that end only at a signal.
    @Test func `the examples of the help work`() throws {
        let directory = try TemporaryDirectory()
        let daemon = try Daemon("--config", directory.write("{}", to: "stated.json5"))
        let statectl = builtProgram("statectl")
        try directory.write("exec '\(statectl)' \"$@\"\n", to: "statectl")
        chmod(directory.path(of: "statectl"), 0o755)
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        let environment = [
            "PATH": "\(directory.path):\(path):/usr/sbin:/sbin", "STATED_SOCKET": daemon.socketPath,
            "STATE_DIRECTORY": daemon.dataPath, "EDITOR": "true",
        ]
        var exampleCount = 0
        for verb in Self.verbs {
            let text = try Statectl.run([verb, "--help"]).text
            let examples = text.drop(through: "examples:\n").split(separator: "\n")
                .prefix { $0.hasPrefix("  ") && !$0.hasPrefix("  --") }
            _ = try Statectl.run(daemon, "set", "audio/volume", "0.7")
            for example in examples {
                // What waits without an end is given one.
                let waits = ["statectl watch ", "statectl wait "].contains { example.contains($0) }
                let isEndless = waits && !example.contains("--timeout 1s")
                let command = isEndless ? "timeout 0.3 \(example) || [ $? = 124 ]" : String(example)
                let script = "set -o pipefail; cd '\(directory.path)'; \(command)"
                let result = try runCommand("bash", ["-c", script], environment: environment)
                #expect(result.exitCode == 0, "\(example): \(result)")
                exampleCount += 1
            }
        }
        #expect(exampleCount >= 20)
    }

    /// What a file is called, and what others have stored, is not what a terminal is told to do.
    @Test func `no message of statectl commands the terminal`() throws {
        let daemon = try Daemon()
        let hostile = "\u{1B}[31m\u{9B}1m\u{202E}"
        let schema = try Statectl.run(daemon, "import", "/nowhere/\(hostile)")
        let key = try Statectl.run(daemon, "get", hostile)
        let handler = try Statectl.run(daemon, "handlers", "--forget", hostile)
        let verb = try Statectl.run(daemon, hostile)
        for result in [schema, key, handler, verb] {
            #expect(result.exitCode != 0 && result.errorText.contains("\\x1B[31m"))
            let line = result.errorText.replacing("\n", with: "")
            let misleads = line.unicodeScalars.contains { $0.misleads }
            #expect(!misleads, "\(result.errorText)")
        }
    }
}

extension String {
    /// What follows the first `marker`; nothing where there is none.
    fileprivate func drop(through marker: String) -> Substring {
        var rest = self[...]
        while !rest.isEmpty, !rest.hasPrefix(marker) { rest.removeFirst() }
        return rest.dropFirst(marker.count)
    }
}
