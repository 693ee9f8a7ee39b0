import Glibc
import StateTestSupport
import Testing

/// Names at which there is something else than a file.
struct FileKindTests {
    private let directory: TemporaryDirectory
    private let stated = builtProgram("stated")

    init() throws { directory = try TemporaryDirectory() }

    private func path(_ name: String) -> String { directory.path(of: name) }

    /// Runs a command in bash, in which `$stated` and `$statectl` are the programs and `$d` is the directory.
    private func bash(_ command: String) throws -> CommandResult {
        try runCommand(
            "bash",
            ["-c", command],
            environment: [
                "stated": stated, "statectl": builtProgram("statectl"), "d": directory.path,
            ]
        )
    }

    // MARK: Configurations

    @Test(arguments: ["mkfifo c", "mkdir c", "ln -s /dev/zero c"])
    func `a reload refuses a configuration that is no file, and the next reload works`(
        command: String
    ) throws {
        try directory.write("{ limits: { watches: 5 } }", to: "c")
        let daemon = try Daemon("--config", path("c"))
        #expect(try bash("cd $d && mv c good && \(command)").exitCode == 0)
        let kind = ["mkfifo c": "a FIFO", "mkdir c": "a directory"][command] ?? "a device"
        for _ in 0..<2 {
            let refused = try Statectl.run(daemon, "reload")
            #expect(refused.exitCode == 2)
            let message = "\(path("c")) is \(kind), not a file; not reloaded; the old configuration"
            #expect(refused.errorText.contains(message), "\(refused)")
        }
        try directory.write("{ limits: { watches: 6 } }", to: "good")
        #expect(try bash("cd $d && rm -r c && mv good c").exitCode == 0)
        #expect(try Statectl.run(daemon, "reload").text.contains("limits.watches: 5 → 6"))
    }

    @Test(arguments: ["--config", "--check-config"])
    func `a start and a check end if the configuration is a FIFO that nobody writes to`(
        option: String
    ) throws {
        try #require(mkfifo(path("c"), 0o600) == 0)
        let result = try runCommand(
            stated,
            [option, path("c"), "--socket", path("s"), "--data", path("data")]
        )
        #expect(result.exitCode == 2)
        #expect(
            result.errorText.contains("\(path("c")) is a FIFO that nobody writes to"),
            "\(result)"
        )
        #expect(fileStatus(path("data")) == nil)
    }

    @Test(arguments: [
        "$stated --check-config <(echo '{}')", "echo '{}' | $stated --check-config /dev/stdin",
        "mkfifo $d/c; echo '{}' > $d/c & $stated --check-config $d/c",
    ])
    func `a configuration that another process writes is checked`(command: String) throws {
        let result = try bash(command)
        #expect(result.exitCode == 0 && result.text.contains("is valid: 0 rules"), "\(result)")
    }

    @Test func `a daemon starts with a configuration that another process writes`() throws {
        let options = "--socket $d/s --data $d/data"
        let program = try Program(
            ["bash", "-c", "exec $stated --config <(echo '{}') \(options)"],
            environment: ["stated": stated, "d": directory.path]
        )
        try program.waitForErrors(containing: "configured by /dev/fd/")
        // What it has written is at its end, and would be an empty configuration.
        let reload = try Statectl.run(["--socket", path("s"), "reload"])
        #expect(reload.exitCode == 2, "\(reload)")
        #expect(reload.errorText.contains("is a FIFO, not a file; not reloaded"), "\(reload)")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
    }

    // MARK: Files that hang

    @Test func `a reload that waits for a file is given up by its name, and the next one works`()
        throws
    {
        try directory.write("{ limits: { watches: 5 } }", to: "c")
        let daemon = try Daemon("--config", path("c"))
        let lease = try FileLease(on: path("c"))
        let refused = try Statectl.run(daemon, "reload")
        #expect(refused.exitCode == 2)
        let message = "\(path("c")) has not answered for 10 s; not reloaded"
        #expect(refused.errorText.contains(message), "\(refused)")
        #expect(daemon.log.contains("error: \(message)"))
        #expect(try Statectl.run(daemon, "status").exitCode == 0)
        // The first reader still waits.
        try directory.write("{ limits: { watches: 6 } }", to: "new")
        try #require(rename(path("new"), path("c")) == 0)
        #expect(try Statectl.run(daemon, "reload").text.contains("limits.watches: 5 → 6"))
        withExtendedLifetime(lease) {}
        #expect(try Statectl.run(daemon, "reload").text.hasPrefix("nothing has changed"))
        #expect(try daemon.stop() == 0)
    }

    @Test(.enabled(if: DeadFileSystem.isPossible, "only root may mount a file system"))
    func `a reload that waits for a dead file system holds up itself, not the next one`() throws {
        try directory.write("{}", to: "good")
        try #require(symlink("good", path("c")) == 0 && mkdir(path("net"), 0o700) == 0)
        let daemon = try Daemon("--config", path("c"))
        let dead = try DeadFileSystem(at: path("net"))
        try #require(symlink("net/c", path("link")) == 0 && rename(path("link"), path("c")) == 0)
        let (preview, reload) = (
            try Statectl.start(daemon, "check-config"), try Statectl.start(daemon, "reload")
        )
        for command in [preview, reload] {
            let refused = try command.finish()
            #expect(refused.exitCode == 2, "\(refused)")
            #expect(refused.errorText.contains("\(path("c")) has not answered for 10 s"))
        }
        try #require(symlink("good", path("link")) == 0 && rename(path("link"), path("c")) == 0)
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try daemon.stop() == 0)
        withExtendedLifetime(dead) {}
    }

    // MARK: Stores

    private static let storeFiles = [
        "stated.db", "stated.db-wal", "stated.db-shm", "stated.db-boot", "lock", "log/1.log",
    ]

    @Test(arguments: storeFiles)
    func `a store with a FIFO in the place of a file is refused by its name`(name: String) throws {
        let daemon = try Daemon(directory: directory)
        #expect(try Statectl.run(daemon, "set", "k", "1").exitCode == 0)
        try daemon.stop()
        let file = path("data/\(name)")
        unlink(file)
        try #require(mkfifo(file, 0o600) == 0)
        for option in ["--check", "--salvage", "--socket"] {
            let value =
                ["--salvage": ["--to", path("new")], "--socket": [path("s")]][option] ?? []
            let result = try runCommand(stated, [option] + value + ["--data", path("data")])
            #expect(result.exitCode == 5, "\(option): \(result)")
            #expect(result.errorText.contains("\(file) is a FIFO, not a file"), "\(result)")
        }
        #expect(fileStatus(path("new")) == nil)
    }

    @Test(arguments: ["memory.patterns", "memory.revisions"])
    func `what is remembered of keys in memory is not read from a FIFO`(name: String) throws {
        try directory.write("{ rules: [{ keys: 'm/', backing: 'memory' }] }", to: "c")
        let daemon = try Daemon(["--config", path("c")], directory: directory)
        try daemon.stop()
        let file = path("data/\(name)")
        unlink(file)
        try #require(mkfifo(file, 0o600) == 0)
        let result = try runCommand(
            stated,
            ["--config", path("c"), "--socket", path("s"), "--data", path("data")]
        )
        #expect(result.exitCode == 5, "\(result)")
        #expect(result.errorText.contains("\(file) is a FIFO, not a file"), "\(result)")
    }

    @Test func `a FIFO in the place of the socket's lock is refused by its name`() throws {
        try #require(mkfifo(path("s.lock"), 0o600) == 0)
        let result = try runCommand(stated, ["--socket", path("s"), "--data", path("data")])
        #expect(result.exitCode == 2, "\(result)")
        #expect(result.errorText.contains("\(path("s.lock")) is a FIFO, not a file"), "\(result)")
    }

    // MARK: Files of one run

    @Test(arguments: [
        "$statectl import $d/f", "$statectl txn $d/f", "$statectl apply $d/f",
        "$statectl backup --verify $d/f", "$statectl backup $d/b --since $d/f",
        "$stated --restore $d/f --data $d/new", "$statectl backup $d/f",
    ])
    func `a FIFO whose other end nobody opens is refused by its name`(command: String) throws {
        let daemon = try Daemon(directory: directory)
        try #require(mkfifo(path("f"), 0o600) == 0)
        let result = try bash("export STATED_SOCKET=\(daemon.socketPath); \(command)")
        let isOfStorage = command.contains("--restore") || command.hasSuffix("backup $d/f")
        #expect(result.exitCode == (isOfStorage ? 5 : 2), "\(result)")
        #expect(result.errorText.contains("\(path("f")) is a FIFO that nobody"), "\(result)")
    }

    @Test(arguments: [
        "$statectl import <(echo 'k = 1')", "$statectl txn <(echo 'set k = 1')",
        "$statectl apply <(echo '{ k: 1 }')", "echo 'k = 1' | $statectl import /dev/stdin",
        "mkfifo $d/f; echo 'k = 1' > $d/f & $statectl import $d/f",
    ])
    func `what another process writes is read from a pipe`(command: String) throws {
        let daemon = try Daemon(directory: directory)
        let result = try bash("export STATED_SOCKET=\(daemon.socketPath); \(command)")
        #expect(result.exitCode == 0, "\(result)")
        #expect(try Statectl.run(daemon, "get", "k").text == "1\n")
    }

    @Test func `a backup goes through a FIFO and back`() throws {
        let daemon = try Daemon(directory: directory)
        #expect(try Statectl.run(daemon, "set", "k", "1").exitCode == 0)
        let command =
            "mkfifo $d/f; cat $d/f > $d/b & $statectl backup $d/f && wait $! && "
            + "$statectl backup --verify <(cat $d/b) && $stated --restore <(cat $d/b) --data $d/new"
        let result = try bash("export STATED_SOCKET=\(daemon.socketPath); \(command)")
        #expect(result.exitCode == 0, "\(result)")
    }

    @Test func `a directory and a socket that were named as files are refused by their kind`()
        throws
    {
        let daemon = try Daemon(directory: directory)
        for (name, kind) in [(directory.path, "a directory"), (daemon.socketPath, "a socket")] {
            let result = try Statectl.run(daemon, "import", name)
            #expect(result.exitCode == 2)
            #expect(result.errorText.contains("\(name) is \(kind), not a file"), "\(result)")
        }
    }
}
