import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Keys in files that not everybody may read, in a directory that everybody may write.
@Suite(.enabled(if: TestUser.areThere, "only root can act as other users"))
struct FileSecretTests {
    private let directory: TemporaryDirectory
    private let user: TestUser
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    init() throws {
        directory = try TemporaryDirectory()
        user = try #require(TestUser(TestUser.names[0]))
        chmod(directory.path, 0o711)
        #expect(try runCommand("mkdir", ["-m", "777", directory.path(of: "d")]).exitCode == 0)
    }

    private func configure(_ options: String) throws -> String {
        try directory.write(
            """
            { rules: [{ keys: 's/', backing: 'file', directory: '\(directory.path(of: "d"))',
                shared: true, write: ['root'], \(options) }] }
            """,
            to: "c.json5"
        )
    }

    @discardableResult
    private func asUser(_ line: String) throws -> CommandResult {
        try runCommand("setpriv", FilePlaceTests.words(user, directory, line))
    }

    @Test func `a secret does not go to whoever has made its file before`() throws {
        let daemon = try Daemon(
            ["--config", try configure("read: ['root']")],
            directory: directory
        )
        let client = try daemon.connect()
        #expect(try asUser("printf mine > d/token; chmod 644 d/token").exitCode == 0)
        #expect(try eventually { try client.value(for: "s/token") == bytes("mine") })
        try client.set(bytes("secret"), for: "s/token")
        #expect(try readFile(directory.path(of: "d/token")) == bytes("secret"))
        let read = try asUser("cat d/token")
        #expect(read.exitCode != 0 && !read.text.contains("secret"))
        // The mode is that of the rule, too: nobody else reads it either.
        var status = stat()
        #expect(stat(directory.path(of: "d/token"), &status) == 0)
        #expect(status.st_uid == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test func `a file stays with an owner who may read the key`() throws {
        let daemon = try Daemon(
            ["--config", try configure("read: ['root', '\(TestUser.names[0])']")],
            directory: directory
        )
        let client = try daemon.connect()
        #expect(try asUser("printf mine > d/token").exitCode == 0)
        #expect(try eventually { try client.value(for: "s/token") == bytes("mine") })
        try client.set(bytes("shared"), for: "s/token")
        #expect(try asUser("cat d/token").output == bytes("shared"))
    }

    @Test(.enabled(if: isInstalled("python3")))
    func `a secret is read by nobody whom a list of its directory lets in`() throws {
        // A default list of acl(5): the user may read what is made in the directory, and pass it.
        let list = """
            import os, struct
            rows = [(1, 7, -1), (2, 7, \(user.uid)), (4, 5, -1)]
            rows += [(16, 7, -1), (32, 5, -1)]
            data = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *row) for row in rows)
            os.mkdir('d/sub')
            os.setxattr('d/sub', 'system.posix_acl_default', data)
            """
        try directory.write(list, to: "list.py")
        chmod(directory.path(of: "list.py"), 0o644)
        let made = try asUser("python3 list.py")
        // Not every file system has lists.
        guard made.exitCode == 0 else { return }
        let daemon = try Daemon(
            [
                "--config",
                try configure("read: ['root', 'group:root'], mode: '0640', group: 'root'"),
            ],
            directory: directory
        )
        let client = try daemon.connect()
        for key in ["s/sub/token", "s/sub/deep/token"] as [Key] {
            try client.set(bytes("secret"), for: key)
        }
        #expect(try readFile(directory.path(of: "d/sub/token")) == bytes("secret"))
        for name in ["token", "deep/token"] {
            let read = try asUser("cat d/sub/\(name)")
            #expect(read.exitCode != 0 && !read.text.contains("secret"), "\(name)")
        }
        #expect(try asUser("ls d/sub/deep").exitCode != 0)
    }

    @Test
    func `a file that everybody could read is said to need a restart, and gets its mode there`()
        throws
    {
        chmod(directory.path(of: "d"), 0o755)
        let daemon = try Daemon(["--config", try configure("trim: false")], directory: directory)
        try daemon.connect().set(bytes("secret"), for: "s/token")
        #expect(try asUser("cat d/token").output == bytes("secret"))
        _ = try configure("trim: false, read: ['root']")
        for _ in 0..<2 {
            let reload = try Statectl.run(daemon, "reload")
            #expect(reload.text.contains("mode") && reload.text.contains("restart"), "\(reload)")
        }
        #expect(eventually { daemon.log.contains("mode (needs a restart)") }, "\(daemon.log)")
        try daemon.restart()
        #expect(try daemon.connect().value(for: "s/token") == bytes("secret"))
        #expect(try asUser("cat d/token").exitCode != 0)
        #expect(try readFile(directory.path(of: "d/token")) == bytes("secret"))
        #expect(try !Statectl.run(daemon, "reload").text.contains("mode"))
    }

    @Test func `a check warns of a shared directory whose keys not everybody may read`() throws {
        let result = try runCommand(
            builtProgram("stated"),
            ["--check-config", try configure("read: ['root']")]
        )
        #expect(result.exitCode == 0, "\(result)")
        #expect("\(result)".contains("use a directory that is not shared"), "\(result)")
    }
}
