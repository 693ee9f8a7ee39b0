import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What one user may make the daemon do with files: bounded, whatever the keys are.
struct FileBoundTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// A daemon with keys in files below `app/`, with some limits.
    private func start(_ limits: String = "{}", options: String = "") throws -> Daemon {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o711)
        mkdir(directory.path(of: "d"), 0o755)
        let file = try directory.write(
            """
            { socket: { mode: '0666' }, limits: \(limits), rules: [{ keys: 'app/', backing: 'file',
                directory: '\(directory.path(of: "d"))' \(options) }] }
            """,
            to: "c.json5"
        )
        return try Daemon(["--config", file], directory: directory)
    }

    private func path(_ depth: Int, _ name: String) -> String {
        "app/" + String(repeating: "a/", count: depth - 1) + name
    }

    private func set(_ keys: some Sequence<String>, _ peer: Peer) throws -> Reply {
        try peer.ask([bytes("MSET")] + keys.flatMap { [bytes($0), bytes("1")] })
    }

    @Test func `bounded: a key whose file is too deep is refused, and the reply names the limit`()
        throws
    {
        let daemon = try start()
        let peer = try Peer(daemon.socketPath)
        let wide = try set((0..<100).map { path(480, "k\($0)") }, peer)
        #expect("\(wide)".contains("480 names; the limit is 32 (limits.fileDepth)"), "\(wide)")
        #expect(try peer.ask("DBSIZE") == .integer(0))
        #expect(try set([path(32, "k")], peer) == .simple("OK"))
        #expect("\(try set([path(33, "k")], peer))".contains("REJECTED"))
        // What is there stays where a limit is lowered, and can be deleted, by whatever way.
        let file = daemon.directory.path(of: "c.json5")
        let text = String(decoding: try readFile(file), as: UTF8.self)
        try daemon.directory.write(
            text.replacing("limits: {}", with: "limits: { fileDepth: 4 }"),
            to: "c.json5"
        )
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try peer.ask("GET \(path(32, "k"))") == .bulk(bytes("1")))
        #expect("\(try set([path(32, "k")], peer))".contains("the limit is 4"))
        try daemon.restart()
        let again = try Peer(daemon.socketPath)
        #expect(try again.ask("GET \(path(32, "k"))") == .bulk(bytes("1")))
        #expect(try again.ask("DEL \(path(32, "k"))") == .integer(1))
        let left = try runCommand("find", [daemon.directory.path(of: "d"), "-type", "f"])
        #expect(left.lines.isEmpty)
    }

    @Test func `bounded: what is far too deep takes the way of its directories once`() throws {
        let daemon = try start("{ fileDepth: 512 }")
        let peer = try Peer(daemon.socketPath)
        let start = ContinuousClock.now
        #expect(try set((0..<100).map { path(480, "k\($0)") }, peer) == .simple("OK"))
        let time = ContinuousClock.now - start
        #expect(time < .seconds(15), "\(time)")
        #expect(try peer.ask("DBSIZE") == .integer(100))
        // A kill then costs the next start as little.
        let again = ContinuousClock.now
        daemon.kill()
        try daemon.start()
        #expect(ContinuousClock.now - again < .seconds(15))
        #expect(try Peer(daemon.socketPath).ask("GET \(path(480, "k99"))") == .bulk(bytes("1")))
    }

    @Test(.enabled(if: TestUser.areThere, "only root can act as other users"))
    func `bounded: a commit of more files than a user may write is refused`() throws {
        let daemon = try start()
        let user = try #require(TestUser(TestUser.names[0]))
        let peer = Peer(try user.connect(to: daemon.socketPath))
        let many = try set((0..<1_000).map { path(20, "k\($0)") }, peer)
        #expect("\(many)".contains("LIMIT") && "\(many)".contains("limits.steps"), "\(many)")
        #expect(try peer.ask("DBSIZE") == .integer(0))
        #expect(try set((0..<150).map { path(20, "k\($0)") }, peer) == .simple("OK"))
        // Each of these makes directories of its own.
        let apart = (0..<15).map { path(5, "x\($0)/\(String(repeating: "b/", count: 20))k") }
        #expect("\(try set(apart, peer))".contains("LIMIT"))
        let one = try peer.ask("MULTI")
        #expect(one == .simple("OK"))
        for number in 0..<400 { _ = try peer.ask("SET app/m \(number)") }
        #expect(try peer.ask("EXEC").elements?.count == 400)
        // Root could stop the daemon anyway.
        let root = try Peer(daemon.socketPath)
        #expect(try set((0..<1_000).map { path(20, "k\($0)") }, root) == .simple("OK"))
    }

    @Test func `bounded: writes of files wait while many wait for the disk, and all are stored`()
        throws
    {
        let daemon = try start("{ steps: 500 }")
        let peer = try Peer(daemon.socketPath)
        let count = 300
        try peer.send((0..<count).map { [bytes("SET"), bytes("app/k\($0)"), bytes("\($0)")] })
        // Somebody else's keys are not held up by what is in files.
        #expect(try Peer(daemon.socketPath).ask("SET plain 1") == .simple("OK"))
        #expect(try peer.next(count).allSatisfy { $0 == .simple("OK") })
        for number in [0, 150, 299] {
            let file = daemon.directory.path(of: "d/k\(number)")
            #expect(try readFile(file) == bytes("\(number)"))
        }
    }
}

/// Files that are large and take no disk space, which a user puts into a shared directory.
struct SparseFileTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        mkdir(directory.path(of: "d"), 0o755)
        file = try directory.write(
            """
            { rules: [{ keys: 'app/', backing: 'file',
                directory: '\(directory.path(of: "d"))' }] }
            """,
            to: "c.json5"
        )
    }

    private func fill(_ count: Int) throws {
        let place = directory.path(of: "d")
        let line = "for n in $(seq \(count)); do truncate -s 8M \(place)/f$n; done"
        #expect(try runCommand("bash", ["-ec", line]).exitCode == 0)
    }

    private func start(mebibytes: Int) throws -> Daemon {
        try Daemon(
            ["--config", file],
            directory: directory,
            launcher: ["prlimit", "--as=\(mebibytes << 20)"]
        )
    }

    private func report(_ daemon: Daemon) throws -> String? {
        try daemon.connect().status().first { $0.name == "files" }?.text
    }

    @Test func `bounded: files that memory has no room for keep no daemon from starting`() throws {
        try fill(50)
        let daemon = try start(mebibytes: 450)
        let isReported = try eventually { try report(daemon)?.contains("memory is short") ?? false }
        #expect(isReported, "\(daemon.log)")
        // What fits is there, what does not is named, and the daemon serves; each time.
        for _ in 0..<2 {
            let peer = try Peer(daemon.socketPath)
            let number = try #require(
                try (1...50).first { try peer.ask("STRLEN app/f\($0)") == .integer(8 << 20) }
            )
            #expect(try peer.ask([bytes("SET"), bytes("app/f\(number)"), [1]]) == .simple("OK"))
            #expect(try readFile(directory.path(of: "d/f\(number)")) == [1])
            try daemon.restart()
            #expect(try eventually { try report(daemon)?.contains("memory is short") ?? false })
        }
        try daemon.stop()
    }

    @Test func `bounded: files that appear while clients are served hold up no writes`() throws {
        let daemon = try start(mebibytes: 8_000)
        let client = try daemon.connect()
        let line =
            "mkdir \(directory.path(of: "in")); cd \(directory.path(of: "in")); "
            + "for n in $(seq 40); do truncate -s 8M f$n; done; mv f* \(directory.path(of: "d"))"
        #expect(try runCommand("bash", ["-ec", line]).exitCode == 0)
        var slowest = Duration.zero
        let isAdopted = try eventually {
            let start = ContinuousClock.now
            try client.set([1], for: "plain")
            slowest = max(slowest, ContinuousClock.now - start)
            return try client.value(for: "app/f40") != nil && client.value(for: "app/f1") != nil
        }
        #expect(isAdopted)
        #expect(slowest < .seconds(2), "\(slowest)")
        try daemon.stop()
    }
}
