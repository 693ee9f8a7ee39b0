import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// `statectl watch --name`: the daemon remembers what a command has handled.
struct NamedHandlerTests {
    let daemon: Daemon
    private let log: String

    init() throws {
        daemon = try Daemon()
        log = daemon.directory.path(of: "handled")
    }

    /// A handler of `w/` that writes `revision operation key` to the log, and then to its output.
    private func handler(
        _ options: String...,
        script: String = #"line="$STATED_REVISION $STATED_OP $STATED_KEY"; echo "$line" >> "$LOG""#
    ) throws -> RunningCommand {
        let base = ["--socket", daemon.socketPath, "watch", "w/", "--name", "h"] + options
        return try RunningCommand(
            builtProgram("statectl"),
            (base + ["--", "sh", "-c", script + #"; echo "$STATED_KEY""#]).map { Array($0.utf8) },
            environment: ["LOG": log, "DAEMON": "\(daemon.pid)"]
        )
    }

    private func set(_ key: Key, _ value: String = "v") throws -> Int64 {
        try daemon.connect().set(Array(value.utf8), for: key).revision
    }

    private var lines: [String] {
        get throws {
            String(decoding: try readFile(log), as: UTF8.self).split(separator: "\n").map(
                String.init
            )
        }
    }

    private func listed() throws -> Client.Handler? {
        try daemon.connect().handlers().first { $0.name == "h" }
    }

    private func position(of handler: RunningCommand) throws -> Int64? {
        #expect(handler.wait() == 0)
        return try listed()?.position
    }

    @Test func `killed over and over, it misses nothing, and repeats only what was under way`()
        throws
    {
        let commitCount = Extent.named("STATED_HANDLER_COMMITS", short: 150)
        let killCount = Extent.named("STATED_HANDLER_KILLS", short: 5)
        let daemonKillCount = Extent.named("STATED_HANDLER_DAEMON_KILLS", short: 2)
        var generator = SplitMix(seed: Seed.base)
        let victims = (0..<killCount + daemonKillCount).map { $0 < daemonKillCount }
            .shuffled(using: &generator)
        let step = commitCount / (victims.count + 1)
        var revisions: [Int64] = []
        var mayRepeat: Set<Int64> = []
        let client = { try daemon.connect() }

        var runner = try handler("--from", "0")
        for isDaemon in victims {
            let writer = try client()
            for _ in 0..<step { revisions.append(try writer.set([0x76], for: "w/k").revision) }
            for _ in 0..<Int.random(in: 1...step, using: &generator) { _ = try runner.nextLine() }
            if isDaemon {
                daemon.kill()
                try daemon.start()
            } else {
                runner.signal(SIGKILL)
                _ = runner.wait()
                // Under way is the last that it has begun, or the one behind it.
                let last = try lines.last.flatMap { Int64($0.prefix { $0 != " " }) } ?? 0
                mayRepeat.formUnion([last] + revisions.filter { $0 > last }.prefix(1))
                runner = try handler()
            }
        }
        let writer = try client()
        while revisions.count < commitCount {
            revisions.append(try writer.set([0x76], for: "w/k").revision)
        }
        _ = try writer.set([0x76], for: "w/end")
        while try runner.nextLine() != "w/end" {}

        var seen: [Int64: Int] = [:]
        var firsts: [Int64] = []
        for line in try lines.dropLast() {
            let revision = try #require(Int64(line.prefix { $0 != " " }))
            if seen[revision] == nil { firsts.append(revision) }
            seen[revision, default: 0] += 1
        }
        #expect(firsts == revisions)
        let repeated = seen.filter { $0.value > 1 }
        #expect(Set(repeated.keys).isSubset(of: mayRepeat))
        #expect(repeated.values.reduce(0) { $0 + $1 - 1 } <= killCount)
    }

    @Test func `a commit is handled when all of its changes are`() throws {
        // The command kills its own handler, once.
        let script = #"""
            echo "$STATED_KEY" >> "$LOG"
            if [ "$STATED_KEY" = w/b ] && mkdir "$LOG.once" 2> /dev/null; then kill -9 $PPID; fi
            """#
        let first = try handler("--from", "0", script: script)
        let revision = try daemon.connect().set(["w/a", "w/b", "w/c"].map { ($0, [0x76]) }).revision
        #expect(first.wait() == 128 + SIGKILL)
        #expect(try listed()?.position == 0)
        let second = try handler("--count", "3", script: script)
        #expect(try position(of: second) == revision)
        #expect(try lines == ["w/a", "w/b", "w/a", "w/b", "w/c"])
    }

    @Test
    func `a daemon that dies during the command is told when it is back, and nothing is repeated`()
        throws
    {
        let script = #"""
            echo "$STATED_KEY" >> "$LOG"
            if [ "$STATED_KEY" = w/2 ]; then kill -9 "$DAEMON"; fi
            """#
        for key in ["w/1", "w/2", "w/3"] as [Key] { _ = try set(key) }
        let runner = try handler("--from", "0", "--count", "4", script: script)
        while try runner.nextLine() != "w/2" {}
        // It is dead already, but for being waited for.
        daemon.kill()
        try daemon.start()
        let last = try set("w/4")
        let notices = String(decoding: try runner.finish().error, as: UTF8.self)
        #expect(try position(of: runner) == last)
        #expect(try lines == ["w/1", "w/2", "w/3", "w/4"])
        // The kernel may close the daemon's sockets before the request is sent, or after it.
        let closed = "statectl: the daemon closed the connection (\(daemon.socketPath))"
        let unknown = ", after the request was sent: its outcome is unknown"
        #expect(
            ["", unknown].contains {
                notices == "\(closed)\($0); reconnecting\nstatectl: reconnected\n"
            },
            "\(notices)"
        )
    }

    @Test func `count ends behind a whole commit, and the next start goes on there`() throws {
        let first = try handler("--from", "0", "--count", "2")
        let revision = try daemon.connect().set(["w/a", "w/b", "w/c"].map { ($0, [0x76]) }).revision
        #expect(try position(of: first) == revision)
        let next = try set("w/d")
        #expect(try position(of: handler("--count", "1")) == next)
        #expect(try lines.map { $0.suffix(3) } == ["w/a", "w/b", "w/c", "w/d"])
    }

    @Test func `a command that fails is run again, later each time, before anything else`() throws {
        let script = #"""
            echo "$STATED_KEY" >> "$LOG"
            if [ "$STATED_KEY" = w/a ]; then [ $(grep -c w/a "$LOG") -gt 2 ] || exit 7; fi
            """#
        _ = try set("w/a")
        let last = try set("w/b")
        let result = try handler("--from", "0", "--count", "2", script: script).finish()
        #expect(result.exitCode == 0)
        #expect(try lines == ["w/a", "w/a", "w/a", "w/b"])
        let sentence = "the command for 'w/a' failed with exit code 7; retrying in"
        #expect(
            result.errorText == "statectl: \(sentence) 0.1 s\nstatectl: \(sentence) 0.2 s\n"
        )
        #expect(try listed()?.position == last)
    }

    @Test func `on-error skip passes over what fails`() throws {
        _ = try set("w/a")
        let last = try set("w/b")
        let script = #"echo "$STATED_KEY" >> "$LOG"; [ "$STATED_KEY" = w/b ] || exit 7"#
        let result = try handler(
            "--from",
            "0",
            "--count",
            "2",
            "--on-error",
            "skip",
            script: script
        ).finish()
        #expect(result.exitCode == 0)
        #expect(try lines == ["w/a", "w/b"])
        #expect(result.errorText == "statectl: the command for 'w/a' failed with exit code 7\n")
        #expect(try listed()?.position == last)
    }

    @Test func `a command that fails until the time is over leaves its commit for the next start`()
        throws
    {
        _ = try set("w/a")
        let result = try handler("--from", "0", "--timeout", "50ms", script: "exit 7 #").finish()
        #expect(result.exitCode == 0)
        #expect(try listed()?.position == 0)
    }

    @Test func `one that has a name keeps a second out, and its patterns`() throws {
        let runner = try handler("--snapshot")
        _ = try set("w/a")
        #expect(try runner.nextLine() == "w/a")
        let second = try handler().finish()
        #expect(second.exitCode == 4)
        #expect(second.errorText.contains("attached to process \(runner.pid)"))
        let forgotten = try Statectl.run(daemon, "handlers", "--forget", "h")
        #expect(forgotten.exitCode == 4)
        runner.signal(SIGKILL)
        _ = runner.wait()

        let base = ["watch", "other/", "--name", "h"]
        let other = try Statectl.run(
            ["--socket", daemon.socketPath] + base + ["--", "true"]
        )
        #expect(other.exitCode == 4)
        #expect(other.errorText.contains("--reset"))
        _ = try set("other/a")
        let reset = try Statectl.run(
            ["--socket", daemon.socketPath] + base
                + ["--reset", "--snapshot", "--count", "1", "--", "true"]
        )
        #expect(reset.exitCode == 0, "\(reset)")
        #expect(try listed()?.patterns == [Array("other/".utf8)])
    }

    @Test func `of another store it gets a gap, then the state, and goes on there`() throws {
        let old = try set("w/old")
        #expect(try position(of: handler("--from", "0", "--count", "1")) == old)
        // A copy of a store is another one.
        try daemon.stop()
        let data = daemon.dataPath
        let copied = try runCommand(
            "/bin/sh",
            ["-c", "cp -r '\(data)' '\(data).2' && rm -r '\(data)' && mv '\(data).2' '\(data)'"]
        )
        #expect(copied.exitCode == 0)
        try daemon.start()
        #expect(try listed()?.lag == nil)
        let current = try set("w/a")
        let runner = try handler("--count", "3")
        for key in ["", "w/a", "w/old"] { #expect(try runner.nextLine() == key) }
        let next = try set("w/b")
        #expect(try position(of: runner) == next)
        #expect(
            try lines.dropFirst() == [
                "\(current) gap ", "\(current) snapshot w/a", "\(old) snapshot w/old",
                "\(next) set w/b",
            ]
        )
    }

    @Test
    func `a handler that is forgotten while it has no connection begins again with the state`()
        throws
    {
        // In memory, a restart forgets all of them.
        let daemon = try Daemon("--memory")
        let runner = try RunningCommand(
            builtProgram("statectl"),
            [
                "--socket", daemon.socketPath, "watch", "w/", "--name", "h", "--snapshot", "--",
                "sh", "-c", #"echo "$STATED_OP $STATED_KEY""#,
            ].map { Array($0.utf8) }
        )
        try daemon.connect().set([0x76], for: "w/a")
        #expect(try runner.nextLine().hasSuffix(" w/a"))
        daemon.kill()
        try daemon.start()
        try daemon.connect().set([0x76], for: "w/b")
        #expect(try runner.nextLine() == "gap ")
        #expect(try runner.nextLine().hasSuffix(" w/b"))
    }

    @Test func `handlers lists them, and forget removes one`() throws {
        #expect(try Statectl.run(daemon, "handlers").lines.count == 1)
        let revision = try set("w/a")
        _ = try position(of: handler("--from", "0", "--count", "1"))
        let lines = try Statectl.run(daemon, "handlers").lines
        #expect(lines.count == 2)
        let cells = try #require(lines.last).split(separator: " ").map(String.init)
        #expect(cells.prefix(5) == ["h", "\(geteuid())", "\(revision)", "0", "-"])
        #expect(cells.last == "w/")
        let json = try Statectl.run(daemon, "handlers", "--json").text
        let start = #"{"name":"h","uid":\#(geteuid()),"patterns":["w/"],"position":\#(revision),"#
        #expect(json.hasPrefix(start))
        #expect(json.contains(#""lag":0,"pid":null,"time":"#))
        #expect(try Statectl.run(daemon, "handlers", "--forget", "h").exitCode == 0)
        #expect(try Statectl.run(daemon, "handlers", "--forget", "h").exitCode == 1)
        #expect(try Statectl.run(daemon, "handlers").lines.count == 1)
    }

    @Test(arguments: [
        ["--name", "h"], ["--reset", "--", "true"], ["--on-error", "skip"],
        ["--on-error", "stop", "--", "true"], ["--from", "1", "--snapshot"],
        ["--from", "x"], ["--latest", "--previous"],
    ]) func `what makes no sense together is refused with 2`(options: [String]) throws {
        let result = try Statectl.run(["--socket", daemon.socketPath, "watch", "w/"] + options)
        #expect(result.exitCode == 2, "\(result)")
    }
}
