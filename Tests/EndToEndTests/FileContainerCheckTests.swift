import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// Directories of keys that cannot be used, as `--check-config` and the start say so.
struct FileContainerCheckTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let made = try runCommand(
            "/bin/sh",
            [
                "-ec",
                "cd '\(directory.path)'; mkdir -p good/sub; ln -s good link; mkdir open; chmod 777 open; touch file",
            ]
        )
        try #require(made.exitCode == 0)
    }

    private func configuration(_ directories: [String], shared: Bool = false) throws -> String {
        let rules = directories.enumerated().map { number, name in
            "{ keys: \"k\(number)/\", backing: \"file\", directory: \"\(directory.path(of: name))\""
                + (shared ? ", shared: true }" : " }")
        }
        return try directory.write("{ rules: [\(rules.joined(separator: ","))] }", to: "c.json5")
    }

    @Test(arguments: [
        (["absent"], "cannot be used: No such file or directory"),
        (["file"], "it is not a directory"), (["open"], "others may write"),
        (["good", "good/sub"], "overlap"), (["link"], "is a symbolic link; use "),
    ])
    func `a directory that cannot be used is refused by --check-config and by the start`(
        names: [String],
        reason: String
    ) throws {
        let file = try configuration(names)
        let check = try runCommand(builtProgram("stated"), ["--check-config", file])
        #expect(check.exitCode == 2)
        #expect(
            check.errorText.contains(reason) && check.errorText.contains(directory.path),
            "\(check)"
        )
        let start = try runCommand(
            builtProgram("stated"),
            [
                "--config", file, "--socket", directory.path(of: "s"), "--data",
                directory.path(of: "data"),
            ]
        )
        #expect([2, 5].contains(start.exitCode) && start.errorText.contains(reason), "\(start)")
    }

    @Test(arguments: [
        ("data", "overlaps the data directory"),
        ("data/deep/er", "overlaps the data directory"),
        ("", "overlaps the data directory"),
        ("data-link", "overlaps the data directory"),
        ("etc", "contains the configuration file"),
    ])
    func `a directory with the daemon's own files is refused, by a reload too`(
        name: String,
        reason: String
    ) throws {
        let made = try runCommand(
            "/bin/sh",
            ["-ec", "cd '\(directory.path)'; mkdir -p etc data/deep; ln -s data data-link"]
        )
        try #require(made.exitCode == 0)
        let data = directory.path(of: "data")
        let file = try directory.write("{ data: '\(data)' }", to: "etc/c.json5")
        let daemon = try Daemon("--config", file, directory: directory)
        _ = try directory.write(
            """
            { data: '\(data)', rules: [
                { keys: 'a/', backing: 'file', directory: '\(directory.path(of: name))', shared: true },
            ] }
            """,
            to: "etc/c.json5"
        )
        let check = try runCommand(builtProgram("stated"), ["--check-config", file])
        #expect(check.exitCode == 2 && check.errorText.contains(reason), "\(check)")
        #expect(check.errorText.contains("\(file): rules[1].directory: "), "\(check)")
        let reload = try Statectl.run(daemon, "reload")
        #expect(reload.exitCode == 2 && reload.errorText.contains(reason), "\(reload)")
        #expect(try Statectl.run(daemon, "list").text == "")
    }

    @Test
    func `a directory that can be used is, and one that others may write where the rule says so`()
        throws
    {
        for (names, isShared) in [(["good"], false), (["open"], true)] {
            let file = try configuration(names, shared: isShared)
            let check = try runCommand(builtProgram("stated"), ["--check-config", file])
            #expect(check.exitCode == 0, "\(check)")
            let daemon = try Daemon(["--config", file])
            try daemon.connect().set([1], for: "k0/a")
            #expect(try readFile(directory.path(of: names[0] + "/a")) == [1])
        }
    }

    @Test func `values in memory have no files`() throws {
        let file = try configuration(["good"])
        let start = try runCommand(
            builtProgram("stated"),
            [
                "--memory", "--config", file, "--socket", directory.path(of: "s"), "--data",
                directory.path(of: "data"),
            ]
        )
        #expect(
            start.exitCode == 2 && start.errorText.contains("needs a store on disk"),
            "\(start)"
        )
    }

    @Test(.enabled(if: isInstalled("strace"), "strace is not installed"))
    func `files are used, and no link followed, where a sandbox has no openat2`() throws {
        let arguments = [
            "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat2", "-e",
            "inject=openat2:error=ENOSYS", builtProgram("stated"), "--config",
            try configuration(["good"]), "--socket", directory.path(of: "s"), "--data",
            directory.path(of: "data"),
        ]
        let traced = try RunningCommand("strace", arguments.map { Array($0.utf8) })
        _ = eventually { (try? Client(socket: directory.path(of: "s")).status()) != nil }
        let client = try Client(socket: directory.path(of: "s"), timeout: .seconds(20))
        let pid = try #require(try client.status().first { $0.name == "pid" }?.number)
        try client.set([1], for: "k0/a/b")
        #expect(try readFile(directory.path(of: "good/a/b")) == [1])
        #expect(symlink("..", directory.path(of: "good/up")) == 0)
        #expect(throws: StateError.self) { try client.set([1], for: "k0/up/escaped") }
        #expect(access(directory.path(of: "escaped"), F_OK) != 0)
        kill(pid_t(pid), SIGTERM)
        #expect(traced.wait() == 0)
    }
}
