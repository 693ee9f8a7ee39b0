import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// What the files and directories look like that a rule has the daemon make, and how they are read.
@Suite(.enabled(if: TestUser.areThere, "only root can act as other users"))
struct FileFormTests {
    private let directory: TemporaryDirectory
    private let user: TestUser
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    init() throws {
        directory = try TemporaryDirectory()
        user = try #require(TestUser(TestUser.names[0]))
        chmod(directory.path, 0o711)
    }

    /// Starts a daemon with a rule for `app/`, whose directory is made with `mode`.
    private func start(
        _ options: String,
        mode: mode_t = 0o755,
        limits: String = "{}",
        launcher: [String] = []
    ) throws -> Daemon {
        #expect(mkdir(directory.path(of: "d"), 0o700) == 0)
        chmod(directory.path(of: "d"), mode)
        let file = try directory.write(
            """
            { limits: \(limits), rules: [{ keys: 'app/', backing: 'file',
                directory: '\(directory.path(of: "d"))', \(options) }] }
            """,
            to: "c.json5"
        )
        return try Daemon(["--config", file], directory: directory, launcher: launcher)
    }

    private func asUser(_ line: String) throws -> CommandResult {
        try runCommand("setpriv", FilePlaceTests.words(user, directory, line))
    }

    /// Owner, group and mode, as text.
    private func look(_ name: String) throws -> String {
        var found = stat()
        guard lstat(directory.path(of: name), &found) == 0 else { throw SystemFailure(name) }
        return "\(found.st_uid) \(found.st_gid) \(String(found.st_mode & 0o7777, radix: 8))"
    }

    @Test(arguments: [
        ("", 0o750, "0 0 750"), ("mode: '0600'", 0o755, "0 0 700"),
        ("mode: '0640', group: 'GID'", 0o755, "0 GID 750"),
        ("mode: '0644'", 0o700, "0 0 755"),
        // In a directory that nobody else may write, nobody else gets one to write to.
        ("mode: '0660', group: 'GID'", 0o755, "0 GID 750"),
        ("mode: '0600', owner: 'UID'", 0o755, "0 0 701"),
        ("mode: '0640', owner: 'UID', group: 'GID'", 0o755, "0 GID 751"),
        ("owner: 'UID'", 0o755, "0 0 755"),
        ("mode: '0600', owner: 'UID', shared: true", 0o755, "UID 0 700"),
        ("owner: 'UID', group: 'GID', shared: true", 0o755, "UID GID 755"),
        ("mode: '0666', shared: true", 0o1777, "0 0 1777"),
    ])
    func `a new directory has the form of its rule`(
        options: String,
        mode: mode_t,
        expected: String
    ) throws {
        func filled(_ text: String) -> String {
            text.replacing("UID", with: "\(user.uid)").replacing("GID", with: "\(user.gid)")
        }
        let daemon = try start(filled(options), mode: mode)
        let client = try daemon.connect()
        for key in ["app/sub/a", "app/sub/b", "app/sub/below/c"] as [Key] {
            try client.set(bytes("1"), for: key)
        }
        #expect(try look("d/sub") == filled(expected))
        #expect(try look("d/sub/below") == filled(expected))
        #expect(try client.status().first { $0.name == "files" }?.text == "ok")
        guard options.contains("UID") else { return }
        #expect(try asUser("cat d/sub/a d/sub/below/c").output == bytes("11"))
    }

    @Test(.enabled(if: isInstalled("strace")))
    func `a link in the place of a new directory has the daemon change no other file`() throws {
        try directory.write("kept", to: "victim")
        chmod(directory.path(of: "victim"), 0o600)
        let before = try look("victim")
        // There is time to replace it between two calls of the daemon.
        let daemon = try start(
            "shared: true, mode: '0666', owner: '\(user.uid)', group: '\(user.gid)'",
            mode: 0o777,
            launcher: [
                "strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=mkdirat", "-e",
                "inject=mkdirat:delay_exit=300000",
            ]
        )
        let line =
            "cd d; ln -s ../victim l; echo ready; until mv -T sub old; do :; done; mv -T l sub"
        let words = FilePlaceTests.words(user, directory, "\(line) 2>/dev/null")
        let attacker = try RunningCommand("setpriv", words.map { Array($0.utf8) })
        #expect(try attacker.nextLine() == "ready")
        _ = try? daemon.connect().set(bytes("1"), for: "app/sub/a")
        attacker.closeInput()
        _ = attacker.wait()
        #expect(try look("d/sub").hasSuffix(" 777"), "it is the link")
        #expect(try look("victim") == before)
    }

    @Test func `a value of the largest size has a file with its final line break`() throws {
        let daemon = try start("trim: true", limits: "{ valueBytes: 16 }")
        let client = try daemon.connect()
        // Its file has one byte more than the limit.
        let largest = bytes("fifteen bytes  \n")
        try client.set(largest, for: "app/a")
        #expect(try readFile(directory.path(of: "d/a")) == largest + bytes("\n"))
        try client.set(bytes("other"), for: "app/a")
        try client.set(largest, for: "app/a")
        for (text, value) in [
            ("sixteen_bytes_16\\n", "sixteen_bytes_16"),
            ("16_bytes_sixteen\\r\\n", "16_bytes_sixteen"),
        ] {
            let made = try runCommand(
                "bash",
                ["-c", "printf '\(text)' > \(directory.path)/d/a"]
            )
            #expect(made.exitCode == 0)
            #expect(try eventually { try client.value(for: "app/a") == bytes(value) })
        }
        try client.set(largest, for: "app/a")
        try daemon.restart()
        #expect(try daemon.connect().value(for: "app/a") == largest)
        #expect(try Statectl.run(daemon, "check").exitCode == 0)
        // The limit is for the value.
        for text in ["seventeen bytes 1", "seventeen bytes 1\n"] {
            try directory.write(text, to: "d/b")
            #expect(
                try eventually {
                    try Statectl.run(daemon, "check").text.contains("17 bytes; the limit is 16")
                }
            )
            #expect(try daemon.connect().value(for: "app/b") == nil)
            unlink(directory.path(of: "d/b"))
            #expect(try eventually { try Statectl.run(daemon, "check").exitCode == 0 })
        }
    }
}
