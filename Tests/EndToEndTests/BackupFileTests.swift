import Glibc
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
}
