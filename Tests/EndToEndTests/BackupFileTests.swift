import Glibc
import StateClient
import StateTestSupport
import Testing

/// The files that `statectl backup` reads and writes, and what a restored store means to others.
struct BackupFileTests {
    private let daemon: Daemon
    private var directory: TemporaryDirectory { daemon.directory }

    init() throws { daemon = try Daemon() }

    private func path(_ name: String) -> String { directory.path(of: name) }

    private func run(_ arguments: String...) throws -> CommandResult {
        try Statectl.run(["--socket", daemon.socketPath] + arguments)
    }

    @Test(arguments: ["b", "./b", "hard", "link", "same/b"])
    func `a backup of the changes does not replace the backup before it, however it is named`(
        name: String
    ) throws {
        try #require(run("set", "a", "1").exitCode == 0)
        try #require(run("backup", path("b")).exitCode == 0)
        try #require(run("set", "a", "2").exitCode == 0)
        try #require(link(path("b"), path("hard")) == 0 && symlink("b", path("link")) == 0)
        try #require(symlink(".", path("same")) == 0)
        let before = try readFile(path("b"))
        let refused = try run("backup", path(name), "--since", path("b"))
        #expect(refused.exitCode == 2, "\(refused)")
        #expect(refused.errorText.contains("FILE and --since name the same file"))
        #expect(refused.errorText.contains(path("b")))
        #expect(try readFile(path("b")) == before)
        let other = try run("backup", path("c"), "--since", path(name))
        #expect(other.exitCode == 0 && other.text.contains(": 1 row,"), "\(other)")
    }

    @Test func `standard output that is the backup before is refused as well`() throws {
        try #require(run("set", "a", "1").exitCode == 0)
        try #require(run("backup", path("b")).exitCode == 0)
        let before = try readFile(path("b"))
        let program = "'\(builtProgram("statectl"))' --socket '\(daemon.socketPath)'"
        let refused = try runCommand(
            "/bin/sh",
            ["-c", "\(program) backup - --since '\(path("b"))' >> '\(path("b"))'"]
        )
        #expect(refused.exitCode == 2, "\(refused)")
        #expect(try readFile(path("b")) == before)
    }

    /// Runs the handler `h` of a store for so many commands, and returns what they got.
    private func handle(_ socket: String, count: Int) throws -> [String] {
        let script = #"echo "$STATED_OP $STATED_KEY""#
        let arguments = [
            "--socket", socket, "watch", "k/", "--name", "h", "--count", "\(count)",
            "--from", "0", "--", "sh", "-c", script,
        ]
        let handled = try Statectl.run(arguments)
        #expect(handled.exitCode == 0, "\(handled)")
        return handled.lines
    }

    @Test func `after a restore a handler gets one gap, then the state, and goes on`() throws {
        for key in ["k/a", "k/b"] { try #require(run("set", key, "1").exitCode == 0) }
        #expect(try handle(daemon.socketPath, count: 2) == ["set k/a", "set k/b"])
        try #require(run("backup", path("b")).exitCode == 0)
        let stated = builtProgram("stated")
        let restored = try runCommand(stated, ["--restore", path("b"), "--data", path("new")])
        #expect(restored.exitCode == 0, "\(restored)")

        let socket = path("new.socket")
        let program = try Program([stated, "--socket", socket, "--data", path("new")])
        try program.waitForErrors(containing: " serves ")
        #expect(try handle(socket, count: 2) == ["gap ", "snapshot k/a", "snapshot k/b"])
        func set(_ key: String) throws {
            try #require(Statectl.run(["--socket", socket, "set", key, "2"]).exitCode == 0)
        }
        try set("k/c")
        #expect(try handle(socket, count: 1) == ["set k/c"])
        // It stays one gap, also after another start.
        program.send(SIGTERM)
        try #require(program.end() == 0)
        let again = try Program([stated, "--socket", socket, "--data", path("new")])
        try again.waitForErrors(containing: " serves ")
        try set("k/a")
        #expect(try handle(socket, count: 1) == ["set k/a"])
    }

    @Test func `status shows the pause of compaction, and who asks learns how long it lasts`()
        throws
    {
        try #require(run("set", "a", "1").exitCode == 0)
        let reader = try daemon.connect()
        _ = try reader.beginBackup()
        #expect(try run("status").text.contains("\ncompaction_pause:      a backup is being made;"))
        let refused = try run("compact")
        #expect(refused.exitCode == 4, "\(refused)")
        #expect(refused.errorText.firstMatch(of: /or in [1-9][0-9]? s if its client/) != nil)
        while try reader.nextBackupPiece() != nil {}
        #expect(try !run("status").text.contains("compaction_pause"))
        #expect(try run("compact").exitCode == 0)
    }
}
