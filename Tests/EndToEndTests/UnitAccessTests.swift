import Glibc
import StateTestSupport
import StateWire
import Testing

/// Access by the unit of systemd that a client runs in: its control group names it.
@Suite(
    .enabled(
        if: TestUser.areThere && ControlGroup.canBeMade,
        "only root can make control groups and connect as other users"
    )
)
struct UnitAccessTests {
    private let daemon: Daemon
    private let user: TestUser
    /// A copy that every user may see.
    private let statectl: String

    init() throws {
        let directory = try TemporaryDirectory()
        statectl = directory.path(of: "statectl")
        _ = try runCommand("cp", [builtProgram("statectl"), statectl])
        chmod(directory.path, 0o711)
        let rules = """
            { socket: { mode: "0666" }, rules: [
              { keys: "net/", read: ["*"], write: ["unit:net-\(getpid()).service"] },
            ] }
            """
        let file = try directory.write(rules, to: "stated.json5")
        daemon = try Daemon(["--config", file], directory: directory)
        user = try #require(TestUser(TestUser.names[0]))
    }

    @Test func `processes of the unit may, and others of the same user may not`() throws {
        let unit = try ControlGroup("net-\(getpid()).service")
        let other = try ControlGroup("other-\(getpid()).service")
        #expect(try set("net/a", in: unit.path).exitCode == 0)
        let inner = try ControlGroup("net-\(getpid()).service/worker.service")
        #expect(try set("net/b", in: inner.path).exitCode == 0)
        let deeper = try ControlGroup("other-\(getpid()).service/net-\(getpid()).service")
        for group in [other.path, deeper.path] {
            let refused = try set("net/c", in: group)
            #expect(refused.exitCode == 4)
            #expect(refused.errorText.contains("NOPERM"), "\(refused)")
        }
    }

    @Test func `a client that is connected already has the rights of its unit after a reload`()
        throws
    {
        let name = "late-\(getpid()).service"
        let unit = try ControlGroup(name)
        let other = try ControlGroup("apart-\(getpid()).service")
        let watches = try [unit, other].map { group in
            let words = ["-c", line("watch late/ --count 1", in: group.path)]
            return try RunningCommand("/bin/sh", words.map { Array($0.utf8) })
        }
        #expect(try eventually { try Statectl.run(daemon, "watches").lines.count >= 2 })
        let rules = """
            { socket: { mode: "0666" }, rules: [{ keys: "late/", read: ["unit:\(name)"] }] }
            """
        try daemon.directory.write(rules, to: "stated.json5")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "late/a", "seen").exitCode == 0)
        let seen = try watches[0].finish()
        #expect(seen.text.contains("seen"), "\(seen)")
        watches[1].signal(SIGTERM)
        #expect(try !watches[1].finish().text.contains("seen"))
    }

    @Test(.enabled(if: isInstalled("python3")))
    func `what waits while rules first name a unit is told what that may see`() throws {
        try daemon.directory.write("{ socket: { mode: '0666' } }", to: "stated.json5")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "late/a", "seen").exitCode == 0)
        let name = "waits-\(getpid()).service"
        let unit = try ControlGroup(name)
        func start(_ line: String) throws -> RunningCommand {
            try RunningCommand("/bin/sh", ["-c", line].map { Array($0.utf8) })
        }
        let watch = try start(line("watch late/ --snapshot --count 3", in: unit.path))
        #expect(try watch.nextLine().contains("seen"))
        let peer = try Peer(daemon.socketPath)
        let revision = try peer.ask("STATE.STATUS")["revision"]?.integerValue ?? 0
        let poll = try start(
            """
            echo $$ >\(unit.path)/cgroup.procs && exec python3 -c '
            import os, socket, sys
            os.setgroups([])
            os.setgid(\(user.uid))
            os.setuid(\(user.uid))
            link = socket.socket(socket.AF_UNIX)
            link.connect("\(daemon.socketPath)")
            link.sendall(b"STATE.CHANGES SINCE \(revision) BLOCK 0 late/\\r\\n")
            sys.stdout.buffer.write(link.recv(4096))'
            """
        )
        #expect(
            try eventually {
                try peer.ask("INFO clients").textValue?.contains("blocked_clients:1") == true
            }
        )
        let rules = """
            { socket: { mode: "0666" }, rules: [{ keys: "late/", read: ["unit:\(name)"] }] }
            """
        try daemon.directory.write(rules, to: "stated.json5")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try poll.finish().text.contains("seen"))
        #expect(try watch.nextLine().hasSuffix("\tgap"))
        #expect(try watch.nextLine().contains("seen"))
        #expect(try Statectl.run(daemon, "set", "late/b", "also seen").exitCode == 0)
        #expect(try watch.nextLine().contains("also seen"))
    }

    /// Sets a key from a process of the control group.
    private func set(_ key: String, in group: String) throws -> CommandResult {
        try runCommand("/bin/sh", ["-c", line("set \(key) 1", in: group)])
    }

    private func line(_ words: String, in group: String) -> String {
        """
        echo $$ >\(group)/cgroup.procs && exec setpriv --reuid \(user.uid) --regid \(user.uid) \
        --clear-groups \(statectl) --socket \(daemon.socketPath) \(words)
        """
    }
}

/// A control group of cgroup version 2, which is removed with the last reference.
private final class ControlGroup {
    let path: String

    /// Where they can be made; nil if nowhere.
    private static let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].first {
        access("\($0)/cgroup.procs", W_OK) == 0 && access("\($0)/cgroup.controllers", F_OK) == 0
    }

    static var canBeMade: Bool {
        guard (try? ControlGroup("probe-\(getpid()).service")) != nil else { return false }
        return true
    }

    init(_ name: String) throws {
        path = "\(try #require(Self.root))/\(name)"
        guard mkdir(path, 0o755) == 0 else { throw SystemFailure("mkdir \(path): \(errno)") }
    }

    deinit { rmdir(path) }
}
