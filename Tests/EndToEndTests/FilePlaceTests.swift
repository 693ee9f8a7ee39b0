import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// A user without rights beside a daemon of root: directories of keys that he could redirect.
@Suite(.enabled(if: TestUser.areThere, "only root can act as other users"))
struct FilePlaceTests {
    private let directory: TemporaryDirectory
    private let user: TestUser
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    init() throws {
        directory = try TemporaryDirectory()
        user = try #require(TestUser(TestUser.names[0]))
        // He may go through, as through /home.
        chmod(directory.path, 0o711)
        try shell(
            "mkdir -p home/conf etc/cron.d; printf secret > etc/shadow; chmod 600 etc/shadow; chown stated-test-a home"
        )
    }

    private func shell(_ line: String) throws {
        let made = try runCommand("bash", ["-ec", "cd '\(directory.path)'; \(line)"])
        try #require(made.exitCode == 0, "\(made)")
    }

    /// Runs a line of shell as the user.
    private func asUser(_ line: String) throws -> CommandResult {
        try runCommand("setpriv", FilePlaceTests.words(user, directory, line))
    }

    static func words(
        _ user: TestUser,
        _ directory: TemporaryDirectory,
        _ line: String
    ) -> [String] {
        [
            "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups", "bash", "-ec",
            "cd '\(directory.path)'; \(line)",
        ]
    }

    private func configure(_ name: String, shared: Bool = false) throws -> String {
        try directory.write(
            """
            { rules: [{ keys: "app/", backing: "file", directory: "\(directory.path(of: name))",
                shared: \(shared) }] }
            """,
            to: "c.json5"
        )
    }

    private func start(_ file: String) throws -> CommandResult {
        try runCommand(
            builtProgram("stated"),
            [
                "--config", file, "--socket", directory.path(of: "other"), "--data",
                directory.path(of: "other-data"),
            ]
        )
    }

    /// Waits until a write is refused, with what it says.
    private func refusal(_ daemon: Daemon, of key: Key, naming text: String) throws -> Bool {
        let client = try daemon.connect()
        return eventually {
            var failure: StateError?
            do throws(StateError) { try client.set([1], for: key) } catch { failure = error }
            return failure?.code == .readOnly && failure?.message.contains(text) ?? false
        }
    }

    // MARK: The way to the directory

    @Test(arguments: [false, true], ["belongs to uid", "is writable by others"])
    func `a directory below one that a user owns or may write is refused everywhere`(
        isShared: Bool,
        reason: String
    ) throws {
        if reason == "is writable by others" { try shell("chown 0 home; chmod 777 home") }
        let daemon = try Daemon("--config", configure("etc"), directory: directory)
        let file = try configure("home/conf", shared: isShared)
        for refused in [
            try runCommand(builtProgram("stated"), ["--check-config", file]), try start(file),
            try Statectl.run(daemon, "reload"),
        ] {
            #expect([2, 5].contains(refused.exitCode), "\(refused)")
            let text = refused.errorText
            #expect(text.contains("\(directory.path(of: "home")) \(reason)"), "\(refused)")
        }
        // The way to /tmp/… itself is one that others may write, but sticky.
        let good = try runCommand(builtProgram("stated"), ["--check-config", configure("etc")])
        #expect(good.exitCode == 0, "\(good)")
    }

    @Test(arguments: [false, true])
    func `who comes to own an ancestor reads and writes nothing by a link in its place`(
        isShared: Bool
    ) throws {
        try shell("chown 0 home")
        let daemon = try Daemon(
            "--config",
            configure("home/conf", shared: isShared),
            directory: directory
        )
        let client = try daemon.connect()
        try client.set(bytes("1"), for: "app/a")
        try shell("chown stated-test-a home")
        let etc = directory.path(of: "etc")
        let attack = try asUser("mv home/conf home/old; ln -s '\(etc)' home/conf")
        #expect(attack.exitCode == 0, "\(attack)")
        #expect(try refusal(daemon, of: "app/cron.d/job", naming: "belongs to uid \(user.uid)"))
        #expect(try client.value(for: "app/shadow") == nil)
        #expect(try client.value(for: "app/a") == bytes("1"))
        #expect(try Statectl.run(daemon, "check").text.contains("belongs to uid \(user.uid)"))
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        #expect(try client.value(for: "app/shadow") == nil)
        #expect(try runCommand("find", [directory.path(of: "etc")]).lines.count == 3)
        // Root's own link is not followed either, as long as he does not say where it leads.
        try shell("chown 0 home")
        #expect(try refusal(daemon, of: "app/cron.d/job", naming: "home/conf is a symbolic link"))
        try shell("rm home/conf; mv home/old home/conf")
        #expect(eventually { (try? client.set(bytes("2"), for: "app/a")) != nil })
        #expect(try readFile(directory.path(of: "home/conf/a")) == bytes("2"))
    }

    @Test func `a link on the way is named, with what to write in its place`() throws {
        try shell("ln -s etc linked; mkdir etc/conf")
        let check = try runCommand(
            builtProgram("stated"),
            ["--check-config", configure("linked/conf")]
        )
        #expect(check.exitCode == 2)
        let link = directory.path(of: "linked")
        #expect(
            check.errorText.contains(
                "\(link) is a symbolic link; use \(directory.path(of: "etc/conf"))"
            ),
            "\(check)"
        )
    }

    // MARK: Below it

    @Test func `what a user owns or may write in a directory that is not shared is refused`() throws
    {
        try shell("mkdir -p etc/his/deep etc/open; chown stated-test-a etc/his; chmod 777 etc/open")
        for name in ["his/k", "his/deep/k", "open/k"] {
            try shell("printf before > etc/\(name)")
        }
        let daemon = try Daemon("--config", configure("etc"), directory: directory)
        let client = try daemon.connect()
        for key in ["app/his/k", "app/his/deep/k", "app/open/k"] as [Key] {
            #expect(try client.value(for: key) == nil)
            #expect(try refusal(daemon, of: key, naming: "others may change "))
        }
        let findings = try Statectl.run(daemon, "check").text
        #expect(findings.contains("\(directory.path(of: "etc/his"))\t"), "\(findings)")
        #expect(findings.contains("\(directory.path(of: "etc/open"))\t"), "\(findings)")
        try client.set(bytes("1"), for: "app/own/k")
        try shell("chown 0 etc/his; chmod 755 etc/open; chown stated-test-a etc/own")
        for key in ["app/his/deep/k", "app/open/k"] as [Key] {
            #expect(try eventually { try client.value(for: key) != nil })
        }
        #expect(try client.value(for: "app/his/deep/k") == bytes("before"))
        #expect(try client.value(for: "app/open/k") == bytes("before"))
        // What he does now is not taken over, and what was there is kept.
        #expect(try asUser("rm etc/own/k; printf evil > etc/own/k").exitCode == 0)
        #expect(try refusal(daemon, of: "app/own/k", naming: "uid \(user.uid)"))
        #expect(try client.value(for: "app/own/k") == bytes("1"))
    }

    @Test func `setuid and setgid do not survive a write by another`() throws {
        try shell("printf 1 > etc/k; chown stated-test-a etc/k; chmod 7755 etc/k")
        let daemon = try Daemon("--config", configure("etc"), directory: directory)
        try daemon.connect().set(bytes("2"), for: "app/k")
        var status = stat()
        #expect(stat(directory.path(of: "etc/k"), &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o755 && status.st_uid == user.uid)
        #expect(try readFile(directory.path(of: "etc/k")) == bytes("2"))
    }

    @Test func `a file with more names than one is refused like a link`() throws {
        try shell("mkdir d; ln etc/shadow d/before")
        let daemon = try Daemon("--config", configure("d"), directory: directory)
        let client = try daemon.connect()
        try shell("ln etc/shadow d/after")
        for key in ["app/before", "app/after"] as [Key] {
            #expect(try refusal(daemon, of: key, naming: "hard links"))
            #expect(try client.value(for: key) == nil)
        }
        try shell("cp d/before d/copy; mv d/copy d/before")
        #expect(try eventually { try client.value(for: "app/before") != nil })
        #expect(try client.value(for: "app/before") == bytes("secret"))
        #expect(try readFile(directory.path(of: "etc/shadow")) == bytes("secret"))
    }
}
