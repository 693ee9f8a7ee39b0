import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What a user who may write to a shared directory makes others wait.
@Suite(.enabled(if: TestUser.areThere, "only root can act as other users"))
struct SharedFileLoadTests {
    private let directory: TemporaryDirectory
    private let user: TestUser
    private let daemon: Daemon

    init() throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        user = try #require(TestUser(TestUser.names[0]))
        chmod(directory.path, 0o711)
        let places = ["d", "in"].map { directory.path(of: $0) }
        #expect(try runCommand("mkdir", ["-m", "777"] + places).exitCode == 0)
        let file = try directory.write(
            """
            { rules: [{ keys: 'app/', backing: 'file', directory: '\(directory.path(of: "d"))',
                shared: true }] }
            """,
            to: "c.json5"
        )
        daemon = try Daemon(["--config", file], directory: directory)
        _ = try daemon.connect().status()
    }

    /// Runs a line of shell as the user, in the directory above that of the files.
    private func asUser(_ line: String) throws {
        let result = try runCommand("setpriv", FilePlaceTests.words(user, directory, line))
        guard result.exitCode == 0 else { throw SystemFailure("\(line): \(result)") }
    }

    /// Runs the body while the user runs a line of shell again and again.
    private func whileUser(repeats line: String, _ body: () throws -> Void) throws {
        let loop = "echo started; exec perl -e '\(line)'"
        let words = FilePlaceTests.words(user, directory, loop)
        let command = try RunningCommand("setpriv", words.map { Array($0.utf8) })
        #expect(try command.nextLine() == "started")
        defer {
            command.signal(SIGKILL)
            _ = command.wait()
        }
        try body()
    }

    /// What clients meet who write one key after the other for two seconds.
    private struct Load {
        /// How long a write takes, on average.
        var mean = Duration.zero
        /// The most that the commit thread has computed between two writes.
        var longestWork = Duration.zero
    }

    private func load() throws -> Load {
        let client = try daemon.connect()
        let (start, thread) = (ContinuousClock.now, try commitThread())
        var (load, count, before) = (Load(), 0, try work(of: thread))
        while ContinuousClock.now - start < .seconds(2) {
            let began = ContinuousClock.now
            try client.set([1], for: Key("load/\(count % 100)"))
            load.mean += ContinuousClock.now - began
            poll(nil, 0, 5)
            let now = try work(of: thread)
            load.longestWork = max(load.longestWork, now - before)
            (before, count) = (now, count + 1)
        }
        load.mean /= count
        return load
    }

    /// Whether the commit thread has had next to nothing to do for half a second.
    private func isAtRest() throws -> Bool {
        let thread = try commitThread()
        let before = try work(of: thread)
        poll(nil, 0, 500)
        return try work(of: thread) - before < .milliseconds(20)
    }

    private func commitThread() throws -> String {
        let tasks = "/proc/\(daemon.pid)/task"
        let thread = try runCommand("ls", [tasks]).lines.first { task in
            try readFile("\(tasks)/\(task)/comm").starts(with: Array("commit".utf8))
        }
        return "\(tasks)/\(try #require(thread))"
    }

    /// How long a thread has computed so far: the first number of its `schedstat`.
    private func work(of thread: String) throws -> Duration {
        let text = String(decoding: try readFile("\(thread)/schedstat"), as: UTF8.self)
        return .nanoseconds(try #require(text.split(separator: " ").first.flatMap { Int64($0) }))
    }

    /// The longest of some writes of keys, one after the other.
    private func slowest(of count: Int, _ name: (Int) -> String) throws -> Duration {
        let client = try daemon.connect()
        return try (0..<count).map { number in
            let start = ContinuousClock.now
            try client.set([1], for: Key(name(number)))
            return ContinuousClock.now - start
        }
        .max() ?? .zero
    }

    @Test func `bounded: a user who renames a large tree again and again holds up nobody`() throws {
        try asUser(
            "mkdir d/a; cd d/a; for n in {1..100}; do mkdir $n; (cd $n; mkdir {1..100}); done"
        )
        try asUser("echo 1 > d/last")
        #expect(try eventually { try daemon.connect().value(for: "app/last") != nil })
        let line =
            "while (1) { rename \"d/a\", \"d/b\"; rename \"d/b\", \"d/a\"; select(undef, undef, undef, 0.01) }"
        try whileUser(repeats: line) {
            let plain = try slowest(of: 60) {
                poll(nil, 0, 20)
                return "plain/\($0)"
            }
            #expect(plain < .milliseconds(500), "\(plain)")
            let ownFiles = try slowest(of: 60) {
                poll(nil, 0, 20)
                return "app/k\($0)"
            }
            #expect(ownFiles < .milliseconds(900), "\(ownFiles)")
        }
        // There are more directories than are watched.
        let finding = "there are more than 8192 directories"
        #expect(try eventually { try Statectl.run(daemon, "check").text.contains(finding) })
        #expect(daemon.log.split(separator: finding).count <= 6)
        // Everything is as the last rename left it.
        try asUser(
            "mkdir -p d/c/deep; echo 2 > d/c/deep/k; [ -e d/a ] || mv d/b d/a; echo 3 > d/a/7/7/k"
        )
        let client = try daemon.connect()
        #expect(try eventually { try client.value(for: "app/c/deep/k") != nil })
        #expect(try eventually { try client.value(for: "app/a/7/7/k") != nil })
        try asUser("echo 4 > d/a/9/9/k")
        #expect(try eventually { try client.value(for: "app/a/9/9/k") != nil })
    }

    @Test func `bounded: many small files that a user moves in are adopted in pieces`() throws {
        let count = 20_000
        try asUser(
            "mkdir in/many; cd in/many; perl -e 'for (1..\(count)) { open F, \">\", $_; print F 1 }'; sync"
        )
        try asUser("mv in/many d/many")
        let client = try daemon.connect()
        var slowest = Duration.zero
        let isAdopted = try eventually(within: .seconds(60)) {
            let start = ContinuousClock.now
            try client.set([1], for: "plain")
            slowest = max(slowest, ContinuousClock.now - start)
            return try client.call([Array("DBSIZE".utf8)]).integerValue == Int64(count) + 1
        }
        #expect(isAdopted)
        #expect(slowest < .milliseconds(800), "\(slowest)")
        // So are those that are only touched, and those that are gone.
        try asUser("cd d/many; perl -e 'utime undef, undef, 1..\(count)'; echo 2 > ../touched")
        let touched = try self.slowest(of: 100) { "plain/\($0)" }
        #expect(touched < .milliseconds(800), "\(touched)")
        #expect(
            try eventually(within: .seconds(60)) { try client.value(for: "app/touched") != nil }
        )
        // However often: the commits of others have most of the time.
        #expect(try eventually(within: .seconds(60)) { try isAtRest() })
        let idle = try load()
        try whileUser(repeats: "chdir \"d/many\"; while (1) { utime undef, undef, 1..\(count) }") {
            let busy = try load()
            #expect(busy.mean - idle.mean < .milliseconds(25), "\(busy) \(idle)")
        }
        // Directories that come and go cost nothing for the files that are beside them.
        let line =
            "while (1) { for (1..40) { mkdir \"d/x$_\" } for (1..40) { rmdir \"d/x$_\" } select(undef, undef, undef, 0.02) }"
        #expect(try eventually(within: .seconds(60)) { try isAtRest() })
        try whileUser(repeats: line) {
            let busy = try load()
            #expect(busy.longestWork < .milliseconds(50), "\(busy)")
        }
        try asUser("mv d/many in/many")
        var removing = Duration.zero
        let isRemoved = try eventually(within: .seconds(60)) {
            let start = ContinuousClock.now
            try client.set([1], for: "plain")
            removing = max(removing, ContinuousClock.now - start)
            return try client.call([Array("DBSIZE".utf8)]).integerValue ?? 0 < 1_000
        }
        #expect(isRemoved)
        #expect(removing < .milliseconds(800), "\(removing)")
    }

    @Test func `bounded: a user who writes a file without end holds up no key of another file`()
        throws
    {
        let line =
            "while (1) { for (1..20) { open F, \">\", \"d/mine$_\"; print F rand; close F } }"
        try whileUser(repeats: line) {
            let slowest = try slowest(of: 30) { "app/others/\($0)" }
            #expect(slowest < .milliseconds(500), "\(slowest)")
        }
    }
}
