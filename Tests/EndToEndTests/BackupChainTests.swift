import Glibc
import StateClient
import StateModel
import StateTestSupport
import Testing

/// What compaction has removed between two backups, or before one, is missing in none of them.
struct BackupChainTests {
    private func run(_ daemon: Daemon, _ words: String...) throws -> CommandResult {
        let result = try Statectl.run(["--socket", daemon.socketPath] + words)
        #expect(result.exitCode == 0, "\(words): \(result)")
        return result
    }

    /// Restores backups into a new directory and returns its values of `k`.
    private func restored(_ daemon: Daemon, _ names: String...) throws -> String {
        let target = daemon.directory.path(of: "new")
        let files = names.flatMap { ["--restore", daemon.directory.path(of: $0)] }
        let restore = try runCommand(builtProgram("stated"), files + ["--data", target])
        #expect(restore.exitCode == 0, "\(restore)")
        let check = try runCommand(builtProgram("stated"), ["--check", "--data", target])
        #expect(check.exitCode == 0, "\(check)")
        let socket = daemon.directory.path(of: "other")
        let program = try Program([builtProgram("stated"), "--socket", socket, "--data", target])
        try program.waitForErrors(containing: " serves ")
        let value = try Client(socket: socket).value(for: "k")
        program.send(SIGTERM)
        #expect(try program.end() == 0)
        return value.map { String(decoding: $0, as: UTF8.self) } ?? "absent"
    }

    @Test func `a backup continues one whose deletes were compacted since`() throws {
        let daemon = try Daemon()
        let path = daemon.directory.path(of:)
        _ = try run(daemon, "set", "k", "1")
        _ = try run(daemon, "delete", "k")
        for key in ["a", "b", "c"] { _ = try run(daemon, "set", key, "1") }
        _ = try run(daemon, "backup", path("whole"))
        _ = try run(daemon, "compact", "--to", "4")
        _ = try run(daemon, "set", "k", "2")
        _ = try run(daemon, "backup", path("since"), "--since", path("whole"))
        #expect(try restored(daemon, "whole", "since") == "2")
    }

    @Test func `a backup without history has the delete of a key of which an older row is left`()
        throws
    {
        let daemon = try Daemon("--history-changes", "100")
        let peer = try Peer(daemon.socketPath)
        func overwrite(_ count: Int) -> [String] { (0..<count).map { "SET hot \($0)" } }
        let commands =
            ["SET k 1"] + (0..<4_200).map { "SET u/\($0) x" } + overwrite(100) + ["SET k 2"]
            + overwrite(2_000) + ["DEL k"] + overwrite(6_000)
        for start in stride(from: 0, to: commands.count, by: 500) {
            let part = commands[start..<min(start + 500, commands.count)]
            try peer.send(part.map(Peer.words))
            _ = try peer.next(part.count)
        }
        _ = try run(daemon, "compact", "--to", "now")
        let path = daemon.directory.path(of: "b")
        _ = try run(daemon, "backup", path, "--no-history")
        _ = try run(daemon, "backup", "--verify", path)
        #expect(try restored(daemon, "b") == "absent")
    }
}
