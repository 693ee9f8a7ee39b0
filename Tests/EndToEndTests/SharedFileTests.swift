import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Directories that others may write, because the rule says so.
@Suite(.enabled(if: TestUser.areThere, "only root can act as other users"))
struct SharedFileTests {
    private let directory: TemporaryDirectory
    private let user: TestUser
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    init() throws {
        directory = try TemporaryDirectory()
        user = try #require(TestUser(TestUser.names[0]))
        chmod(directory.path, 0o711)
        try directory.write("kept", to: "lock")
        #expect(try runCommand("mkdir", ["-m", "777", directory.path(of: "d")]).exitCode == 0)
    }

    private func configuration() throws -> String {
        try directory.write(
            """
            { rules: [{ keys: 'app/', backing: 'file', directory: '\(directory.path(of: "d"))',
                shared: true }] }
            """,
            to: "c.json5"
        )
    }

    private func start(launcher: [String] = []) throws -> Daemon {
        try Daemon(
            ["--config", try configuration()],
            directory: directory,
            launcher: launcher
        )
    }

    /// Runs a line of shell in the directory of the files as the user.
    private func asUser(_ line: String) throws {
        let words = FilePlaceTests.words(user, directory, "cd d; \(line)")
        let result = try runCommand("setpriv", words)
        guard result.exitCode == 0 else { throw SystemFailure("\(line): \(result)") }
    }

    private func status(_ daemon: Daemon) throws -> String? {
        try daemon.connect().status().first { $0.name == "files" }?.text
    }

    @Test(arguments: [
        "ln -s .. .stated", "mkdir .stated; ln -s ../../lock .stated/lock", "> .stated",
    ])
    func `nothing that a user makes has the daemon truncate a file, or keeps it from starting`(
        line: String
    ) throws {
        try asUser(line)
        let daemon = try start()
        try daemon.connect().set(bytes("1"), for: "app/a")
        #expect(try readFile(directory.path(of: "lock")) == bytes("kept"))
        #expect(try status(daemon) == "ok")
    }

    @Test func `nothing of the daemon's own is in the directory`() throws {
        let daemon = try start()
        try daemon.connect().set(bytes("1"), for: "app/a")
        let names = try runCommand("ls", ["-A", directory.path(of: "d")]).lines
        #expect(names == ["a"])
        try daemon.stop()
        // All that was in it is gone, and it is the same directory: that is meant.
        try asUser("rm a")
        try daemon.start()
        #expect(try daemon.connect().value(for: "app/a") == nil)
        #expect(try status(daemon) == "ok")
    }

    @Test func `in a sticky directory nobody writes the files of another`() throws {
        chmod(directory.path(of: "d"), 0o1777)
        let daemon = try start()
        try daemon.connect().set(bytes("1"), for: "app/sub/a")
        try daemon.connect().set(bytes("1"), for: "app/b")
        for name in ["d/b", "d/sub/a", "d/sub"] {
            var status = stat()
            #expect(stat(directory.path(of: name), &status) == 0)
            let isSticky = status.st_mode & S_IFMT == S_IFDIR && status.st_mode & S_ISVTX != 0
            #expect(status.st_mode & 0o022 == 0 || isSticky, "\(name)")
        }
        #expect(throws: (any Error).self) { try asUser("rm b") }
        #expect(throws: (any Error).self) { try asUser("echo x > b") }
    }

    @Test func `a lock that a user holds keeps no daemon away, that of another daemon does`() throws
    {
        let line = "exec flock d sh -c 'echo locked; read end'"
        let words = FilePlaceTests.words(user, directory, line)
        let squatter = try RunningCommand("setpriv", words.map { Array($0.utf8) })
        #expect(try squatter.nextLine() == "locked")
        let daemon = try start()
        try daemon.connect().set(bytes("1"), for: "app/a")
        #expect(try readFile(directory.path(of: "d/a")) == bytes("1"))
        try daemon.stop()
        squatter.closeInput()
        _ = squatter.wait()
        try daemon.start()
        // It takes connections before it has the lock.
        #expect(try daemon.connect().value(for: "app/a") == bytes("1"))
        let options = [
            "--config", try configuration(), "--socket", directory.path(of: "other"), "--data",
            directory.path(of: "other-data"),
        ]
        let second = try runCommand(builtProgram("stated"), options)
        #expect(second.exitCode == 3)
        #expect(second.errorText.contains("is owned by process \(daemon.pid)"), "\(second)")
    }

    /// Starts a program in a PID namespace of its own, which names no processes outside.
    private static let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

    @Test func `a lock that a user holds keeps away no daemon in a PID namespace of its own`()
        throws
    {
        let words = FilePlaceTests.words(
            user,
            directory,
            "exec flock d sh -c 'echo locked; read end'"
        )
        let squatter = try RunningCommand("setpriv", words.map { Array($0.utf8) })
        #expect(try squatter.nextLine() == "locked")
        let daemon = try start(launcher: SharedFileTests.apart)
        try daemon.connect().set(bytes("1"), for: "app/a")
        #expect(try readFile(directory.path(of: "d/a")) == bytes("1"))
        #expect(
            eventually { daemon.log.contains("is locked by a process of another PID namespace") }
        )
        squatter.closeInput()
        _ = squatter.wait()
    }

    @Test
    func
        `a lock whose holder has left it to its child keeps no daemon away, whoever has its number now`()
        throws
    {
        try directory.write(
            "exec 9<d; flock 9 & wait; echo $! > holder; exec sleep 1000",
            to: "squat"
        )
        // The user's lock names a process that has ended; then one of root gets its number.
        let line = """
            cd '\(directory.path)'; touch holder; chown \(user.uid) holder squat
            setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups bash squat &
            trap 'kill $(jobs -p)' EXIT
            until [ -s holder ]; do sleep 0.01; done; read number < holder
            for try in {1..100}; do
                echo $((number - 1)) > /proc/sys/kernel/ns_last_pid; sleep 1000 &
                [ $! = $number ] && break; kill $!
            done
            [ $! = $number ] && ! flock -n d true && echo held
            read end
            """
        let holder = try RunningCommand("bash", ["-c", line].map { Array($0.utf8) })
        defer {
            holder.closeInput()
            _ = holder.wait()
        }
        #expect(try holder.nextLine() == "held")
        let daemon = try start()
        try daemon.connect().set(bytes("1"), for: "app/a")
        #expect(try readFile(directory.path(of: "d/a")) == bytes("1"))
    }

    @Test(.enabled(if: isInstalled("strace"), "strace is not installed"))
    func `bounded: no commit waits for what others have written to the file system`() throws {
        let trace = directory.path(of: "trace")
        let daemon = try start(
            launcher: [
                "strace", "-D", "-f", "-qq", "--decode-pids=comm", "-e", "trace=syncfs", "-o",
                trace,
            ]
        )
        let client = try daemon.connect()
        try client.set(bytes("1"), for: "app/a")
        try asUser("mkdir ../d/made; for n in {1..40}; do echo $n > made/$n; done")
        #expect(try eventually { try client.value(for: "app/made/40") != nil })
        for number in 1...40 {
            #expect(try eventually { try client.value(for: Key("app/made/\(number)")) != nil })
        }
        try daemon.stop()
        // strace(1) ends a little later: `1234<sync> syncfs(15) = 0`.
        let callers = {
            String(decoding: try readFile(trace), as: UTF8.self).split(separator: "\n")
                .map { String($0.prefix { $0 != ">" }) }
        }
        #expect(try eventually { try callers().contains { $0.hasSuffix("<sync") } })
        let found = try callers()
        #expect(!found.contains { $0.hasSuffix("<commit") }, "\(found)")
    }

    @Test func `a directory that only root can open is locked across PID namespaces`() throws {
        chmod(directory.path(of: "d"), 0o700)
        let owner = try RunningCommand(
            "flock",
            [directory.path(of: "d"), "sh", "-c", "echo locked; read end"].map { Array($0.utf8) }
        )
        #expect(try owner.nextLine() == "locked")
        let options = [
            "--config", try configuration(), "--socket", directory.path(of: "other"), "--data",
            directory.path(of: "other-data"),
        ]
        let words = SharedFileTests.apart.dropFirst() + [builtProgram("stated")] + options
        let start = try runCommand("unshare", Array(words))
        #expect(start.exitCode == 3)
        #expect(start.errorText.contains("is owned by another process"), "\(start)")
        owner.closeInput()
        _ = owner.wait()
    }

    @Test func `nothing that users prepared keeps a daemon from starting with files`() throws {
        let deep = "app/" + String(repeating: "n/", count: 39) + "n"
        let refused = [deep, "app/a", "app/a/b", "app/x~", "app/link", "app/pipe"]
        do {
            let daemon = try Daemon([], directory: directory)
            let client = try daemon.connect()
            for key in refused + ["app/plain"] { try client.set(bytes(key), for: Key(key)) }
            try daemon.stop()
        }
        try asUser("ln -s /etc/passwd link; mkfifo pipe")
        let daemon = try start()
        for _ in 0..<2 {
            let client = try daemon.connect()
            // It takes connections before it has read anything.
            _ = try client.status()
            #expect(try readFile(directory.path(of: "d/plain")) == bytes("app/plain"))
            let check = try Statectl.run(daemon, "check").text
            for key in refused {
                #expect(try client.value(for: Key(key)) == bytes(key))
                #expect(check.contains("/d/\(key.dropFirst(4))\t"), "\(check)")
            }
            #expect(try status(daemon)?.hasSuffix("(and 5 more)") ?? false)
            #expect(eventually { daemon.log.contains("cannot be a file: its path has 40 names") })
            try daemon.restart()
        }
        // What was in the way goes, also while the daemon is stopped.
        try daemon.stop()
        try asUser("rm link pipe")
        try daemon.start()
        let client = try daemon.connect()
        #expect(try client.value(for: "app/link") == bytes("app/link"))
        #expect(
            eventually { (try? readFile(directory.path(of: "d/link"))) == bytes("app/link") }
        )
        _ = try client.delete([Pattern("app/a/b")])
        try client.set(bytes("2"), for: "app/a")
        #expect(try readFile(directory.path(of: "d/a")) == bytes("2"))
    }

    @Test func `a tree as deep as a user can make it costs the daemon no descriptors`() throws {
        func deepen(_ name: String) -> String {
            "perl -e 'for (1..1400) { mkdir \"\(name)\"; chdir \"\(name)\" }'"
        }
        try asUser(deepen("a"))
        let daemon = try start(launcher: ["prlimit", "--nofile=200:200"])
        let client = try daemon.connect()
        try client.set(bytes("1"), for: "app/k")
        #expect(try status(daemon) == "ok")
        try asUser(deepen("b"))
        try asUser("printf 2 > other")
        #expect(try eventually { try client.value(for: "app/other") == bytes("2") })
        #expect(try status(daemon) == "ok")
    }

    @Test func `a name that a user makes reaches no terminal as it is`() throws {
        let daemon = try start()
        try asUser("touch $'bad\\e[31m%zz'")
        let place = directory.path(of: "d/bad\\x1B[31m%zz")
        #expect(try eventually { try status(daemon)?.contains(place) ?? false })
        #expect(eventually { daemon.log.contains(place) })
        #expect(!daemon.log.contains("\u{1B}"))
        #expect(try !Statectl.run(daemon, "check").text.contains("\u{1B}"))
    }

    @Test func `a user who makes bad files without end fills no log`() throws {
        let daemon = try start()
        try asUser("touch %{1..400}%zz")
        try asUser("printf 1 > last")
        #expect(try eventually { try daemon.connect().value(for: "app/last") == bytes("1") })
        #expect(daemon.log.split(separator: "is ignored").count <= 101)
        #expect(eventually { daemon.log.contains("no more are logged for a minute") })
        #expect(try status(daemon)?.hasSuffix("(and 399 more)") ?? false)
    }

    @Test func `pipes and links that a user makes are read by nobody`() throws {
        let daemon = try start()
        let client = try daemon.connect()
        try client.set(bytes("1"), for: "app/k")
        try asUser("rm k; mkfifo k pipe; ln -s /etc/passwd link; ln -s ../.. up")
        for name in ["k", "pipe", "link"] {
            #expect(
                try eventually { try Statectl.run(daemon, "check").text.contains("/d/\(name)\t") }
            )
        }
        #expect(try client.value(for: "app/k") == bytes("1"))
        #expect(throws: StateError.self) { try client.set([1], for: "app/up/escaped") }
        #expect(access(directory.path(of: "escaped"), F_OK) != 0)
    }
}
