import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

struct StatectlWatchTests {
    let daemon: Daemon

    init() throws {
        daemon = try Daemon()
        // Printed by --snapshot: whoever has read it knows that the watch has begun.
        try daemon.connect().set(Array("now".utf8), for: "w/begun")
    }

    private func set(_ key: Key, _ value: String) throws -> Int64 {
        try daemon.connect().set(Array(value.utf8), for: key).revision
    }

    private func watching(_ arguments: String...) throws -> RunningCommand {
        let base = ["--socket", daemon.socketPath, "watch", "w/", "--snapshot"]
        let watch = try RunningCommand(
            builtProgram("statectl"),
            (base + arguments).map { Array($0.utf8) }
        )
        if arguments.contains("--json") { #expect(try watch.nextLine().contains("ready")) }
        #expect(try watch.nextLine().contains("w/begun"))
        return watch
    }

    @Test func `--time adds when the change arrived`() throws {
        let (watch, json) = (try watching("--time"), try watching("--time", "--json"))
        _ = try set("w/a", "1")
        let fields = try watch.nextLine().split(separator: "\t")
        let form = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d/
        #expect(fields.count == 5 && fields[4].wholeMatch(of: form) != nil, "\(fields)")
        #expect(try json.nextLine().contains(#""value":"1","time":1"#))
    }

    @Test(arguments: [["watch", "w/", "--snapshot", "--count", "1"], ["wait", "w/begun"]])
    func `--for-daemon waits for the daemon, and without it there is an error`(
        words: [String]
    ) throws {
        try daemon.stop()
        let arguments = ["--socket", daemon.socketPath] + words
        #expect(try Statectl.run(arguments).exitCode == 3)
        let late = try Statectl.run(arguments + ["--for-daemon", "--timeout", "100ms"])
        #expect(
            late.exitCode == 1 && late.errorText.contains("; waiting for the daemon\n"),
            "\(late)"
        )
        let waiting = try RunningCommand(
            builtProgram("statectl"),
            (arguments + ["--for-daemon"]).map { Array($0.utf8) }
        )
        try daemon.start()
        let result = try waiting.finish()
        #expect(result.exitCode == 0, "\(result)")
    }

    @Test func `a change is a line as soon as it is durable`() throws {
        let watch = try watching()
        let first = try set("w/a", "1")
        #expect(try watch.nextLine() == "\(first)\tset\tw/a\t1")
        _ = try set("other", "x")
        let second = try set("w/a", "tab\tline\n\u{1B}\\")
        #expect(try watch.nextLine() == "\(second)\tset\tw/a\ttab\\tline\\n\\x1B\\\\")
        let gone = try daemon.connect().delete([Pattern("w/a")]).revision
        #expect(try watch.nextLine() == "\(gone)\tdelete\tw/a\t")
    }

    @Test func `a snapshot comes first, in key order, and previous values last`() throws {
        let last = try set("w/z", "1")
        let watch = try watching("--previous")
        #expect(try watch.nextLine() == "\(last)\tset\tw/z\t1\t")
        let next = try set("w/begun", "later")
        #expect(try watch.nextLine() == "\(next)\tset\tw/begun\tlater\tnow")
    }

    @Test func `json is one object a line`() throws {
        let watch = try watching("--json", "--previous")
        let first = try set("w/x", "\"1\"")
        #expect(
            try watch.nextLine()
                == #"{"revision":\#(first),"op":"set","key":"w/x","value":"\"1\"","previous":null}"#
        )
        let second = try daemon.connect().set([0xFF], for: "w/x").revision
        #expect(
            try watch.nextLine()
                == #"{"revision":\#(second),"op":"set","key":"w/x","base64":"/w==","previous":"\"1\""}"#
        )
        let gone = try daemon.connect().delete([Pattern("w/x")]).revision
        #expect(
            try watch.nextLine()
                == #"{"revision":\#(gone),"op":"delete","key":"w/x","previousBase64":"/w=="}"#
        )
    }

    @Test func `count ends a watch, also in the middle of a commit`() throws {
        let watch = try watching("--count", "3")
        let revision = try daemon.connect().set(
            (0..<9).map { (Key(stringLiteral: "w/\($0)"), [0x76]) }
        ).revision
        let result = try watch.finish()
        #expect(result.exitCode == 0)
        #expect(result.lines == (0..<2).map { "\(revision)\tset\tw/\($0)\tv" })
    }

    @Test func `timeout ends a watch, and exits 1 where changes are missing`() throws {
        let whole = try Statectl.run(daemon, "watch", "w/", "--snapshot", "--timeout", "100ms")
        #expect(whole.exitCode == 0)
        #expect(whole.lines.count == 1)
        let part = try Statectl.run(daemon, "watch", "none/", "--count", "1", "--timeout", "50ms")
        #expect(part.exitCode == 1)
    }

    @Test func `a watch that nobody reads ends by itself`() throws {
        let command = "'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)'"
        let shell = "\(command) watch w/ --snapshot | head -1; echo ${PIPESTATUS[0]}"
        let result = try runCommand("bash", ["-c", shell])
        #expect(result.lines.count == 2)
        #expect(result.lines.last == "0")
        #expect(result.error.isEmpty)
    }

    @Test func `a gap is never silent`() throws {
        let hello = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
        let request = "*2\r\n$11\r\nSTATE.WATCH\r\n$2\r\nw/\r\n"
        let server = try TranscriptServer(
            .receive((hello + request).utf8.count),
            .send("%0\r\n%2\r\n$5\r\nwatch\r\n:1\r\n$8\r\nrevision\r\n:9\r\n"),
            .send(">3\r\n$9\r\nstate.gap\r\n:1\r\n:11\r\n"),
            .send(
                ">4\r\n$12\r\nstate.change\r\n:1\r\n:0\r\n*1\r\n*3\r\n$3\r\nw/a\r\n$1\r\nx\r\n:4\r\n"
            )
        )
        let result = try Statectl.run(["--socket", server.path, "watch", "w/", "--count", "1"])
        #expect(result.exitCode == 0)
        #expect(result.text == "11\tgap\n4\tset\tw/a\tx\n")
        #expect(result.errorText.contains("11"))
        #expect(server.finish() == hello + request)
    }
}

struct StatectlWatchCommandTests {
    let daemon: Daemon
    let script = #"printf '%s %s %s ' "$STATED_KEY" "$STATED_OP" "$STATED_REVISION"; cat; echo"#

    init() throws {
        daemon = try Daemon()
        try daemon.connect().set(Array("now".utf8), for: "w/begun")
    }

    private func watching(_ arguments: String...) throws -> RunningCommand {
        let base = ["--socket", daemon.socketPath, "watch", "w/", "--snapshot"]
        return try RunningCommand(
            builtProgram("statectl"),
            (base + arguments).map { Array($0.utf8) }
        )
    }

    private func set(_ key: Key, _ value: [UInt8]) throws -> Int64 {
        try daemon.connect().set(value, for: key).revision
    }

    @Test func `the command has the change in its environment and on its input`() throws {
        let watch = try watching("--", "sh", "-c", script)
        #expect(try watch.nextLine().hasPrefix("w/begun snapshot "))
        let set = try set("w/a b", Array("raw\tvalue".utf8))
        #expect(try watch.nextLine() == "w/a b set \(set) raw\tvalue")
        let gone = try daemon.connect().delete([Pattern("w/a b")]).revision
        #expect(try watch.nextLine() == "w/a b delete \(gone) ")
    }

    @Test func `with json the command reads the object`() throws {
        let watch = try watching("--json", "--previous", "--", "cat")
        #expect(try watch.nextLine().contains(#""op":"snapshot","key":"w/begun","value":"now""#))
        let revision = try set("w/begun", [0x78])
        let expected =
            #"{"revision":\#(revision),"op":"set","key":"w/begun","value":"x","previous":"now"}"#
        #expect(try watch.nextLine() == expected)
    }

    @Test func `commands run one after the other, in the order of the changes`() throws {
        // Each command ends a moment after its successor could have begun.
        let script = #"printf '<%s' "$STATED_KEY"; seq 20000 > /dev/null; echo '>'"#
        let watch = try watching("--count", "21", "--", "sh", "-c", script)
        #expect(try watch.nextLine() == "<w/begun>")
        for index in 10..<30 { _ = try set(Key(stringLiteral: "w/\(index)"), []) }
        let result = try watch.finish()
        #expect(result.exitCode == 0)
        #expect(result.lines == (10..<30).map { "<w/\($0)>" })
    }

    @Test func `a command that fails is reported and the watch goes on`() throws {
        let script =
            #"echo "$STATED_KEY"; case "$STATED_KEY" in w/a) exit 7;; w/b) kill -9 $$;; esac"#
        let watch = try watching("--count", "4", "--", "sh", "-c", script)
        #expect(try watch.nextLine() == "w/begun")
        for key in ["w/a", "w/b", "w/c"] as [Key] { _ = try set(key, []) }
        let result = try watch.finish()
        #expect(result.exitCode == 0)
        #expect(result.lines == ["w/a", "w/b", "w/c"])
        #expect(result.errorText.contains("'w/a' failed with exit code 7"))
        #expect(result.errorText.contains("'w/b' was ended by signal 9"))
        #expect(!result.errorText.contains("w/c"))
    }

    @Test func `a command that does not read its input is no error`() throws {
        let watch = try watching("--count", "2", "--", "echo", "seen")
        #expect(try watch.nextLine() == "seen")
        _ = try set("w/large", [UInt8](repeating: 0x78, count: 4 << 20))
        let result = try watch.finish()
        #expect(result.exitCode == 0)
        #expect(result.text == "seen\n")
        #expect(result.error.isEmpty)
    }

    @Test func `a command that is not there is refused, and one that went away is reported`() throws
    {
        let none = try Statectl.run(daemon, "watch", "w/", "--count", "1", "--", "/none/such")
        #expect(none.exitCode == 2 && none.errorText.contains("no program '/none/such'"))
        let directory = try TemporaryDirectory()
        let script = "#!/bin/sh\nrm \"$0\"\n"
        let program = try directory.write(Array(script.utf8), to: "once")
        chmod(program, 0o755)
        #expect(try Statectl.run(daemon, "set", "w/next", "1").exitCode == 0)
        let result = try Statectl.run(
            daemon,
            "watch",
            "w/",
            "--snapshot",
            "--count",
            "2",
            "--",
            program
        )
        #expect(result.exitCode == 0)
        #expect(result.errorText.contains("could not be started: No such file"))
    }
}
