import Glibc
import StateTestSupport
import Testing

/// Rules in files of their own, and files that rules have made.
struct RuleFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func start(_ configuration: String) throws -> Program {
        let path = try directory.write(configuration, to: "c.json5")
        let program = try Program([
            builtProgram("stated"), "--config", path, "--socket", directory.path(of: "s"), "--data",
            directory.path(of: "data"),
        ])
        try program.waitForErrors(containing: " serves ")
        return program
    }

    private func statectl(_ arguments: String...) throws -> CommandResult {
        try Statectl.run(["--socket", directory.path(of: "s")] + arguments)
    }

    private func end(_ program: Program) throws {
        program.send(SIGTERM)
        #expect(try program.end() == 0)
    }

    private func status(_ name: String) throws -> stat {
        var status = stat()
        try #require(lstat(directory.path(of: name), &status) == 0)
        return status
    }

    @Test func `rules in files are numbered on, read in order, and read again at a reload`() throws
    {
        #expect(mkdir(directory.path(of: "rules.d"), 0o755) == 0)
        try directory.write(
            "{ rules: [\n { keys: 'b', readonly: true } ] }",
            to: "rules.d/20-b.json5"
        )
        try directory.write(
            "{ rules: [ { keys: 'a', schema: { type: 'integer' } } ] }",
            to: "rules.d/10-a.json5"
        )
        let program = try start("{ rules: [ { keys: 'own', readonly: true } ] }")
        #expect(try statectl("set", "a", "text").exitCode == 4)
        let refused = try statectl("set", "b", "1")
        #expect(refused.exitCode == 4 && refused.errorText.contains("rule 3"), "\(refused)")
        #expect(try statectl("explain", "b").text.contains("rules.d/20-b.json5:2"))
        // A fault leaves what was in force, and says where it is.
        try directory.write("{ rules: [ { keys: 'a', shema: true } ] }", to: "rules.d/10-a.json5")
        let faulty = try statectl("reload")
        #expect(
            faulty.exitCode != 0 && faulty.errorText.contains("rules.d/10-a.json5:1:"),
            "\(faulty)"
        )
        #expect(try statectl("set", "a", "text").exitCode == 4)
        #expect(unlink(directory.path(of: "rules.d/10-a.json5")) == 0)
        #expect(try statectl("reload").exitCode == 0)
        #expect(try statectl("set", "a", "text").exitCode == 0)
        #expect(try statectl("explain", "b").text.contains("2 (b), rules.d/20-b.json5:2"))
        try end(program)
    }

    @Test func `git sees the files of keys, and nothing else`() throws {
        #expect(mkdir(directory.path(of: "tree"), 0o700) == 0)
        let place = directory.path(of: "tree")
        let program = try start(
            "{ rules: [ { keys: 'a/', backing: 'file', directory: '\(place)' } ] }"
        )
        #expect(try statectl("set", "a/b=1", "a/c=2").exitCode == 0)
        try runGit("init", "--quiet")
        #expect(try runGit("status", "--porcelain", "--untracked-files=all").text == "?? b\n?? c\n")
        try end(program)
    }

    @discardableResult
    private func runGit(_ arguments: String...) throws -> CommandResult {
        let result = try runCommand("git", ["-C", directory.path(of: "tree")] + arguments)
        #expect(result.exitCode == 0, "\(result)")
        return result
    }

    @Test(.enabled(if: geteuid() == 0))
    func `new files have the mode, owner and group of their rule`()
        throws
    {
        let account = try #require(getpwnam("nobody")).pointee
        let group = try #require(getgrnam("daemon")).pointee.gr_gid
        for place in ["open", "closed"] { #expect(mkdir(directory.path(of: place), 0o755) == 0) }
        let program = try start(
            """
            { rules: [
              { keys: "o/", backing: "file", directory: "\(directory.path(of: "open"))",
                mode: "0640", owner: "nobody", group: "daemon" },
              { keys: "c/", backing: "file", directory: "\(directory.path(of: "closed"))", read: ["root"] },
            ] }
            """
        )
        #expect(try statectl("set", "o/d/key=1", "c/d/key=2").exitCode == 0)
        let open = try status("open/d/key")
        #expect(open.st_mode & 0o7777 == 0o640)
        #expect(open.st_uid == account.pw_uid && open.st_gid == group)
        // Its owner can go through the directory, which nobody else may write.
        #expect(try status("open/d").st_mode & 0o7777 == 0o751 && status("open/d").st_uid == 0)
        #expect(try status("closed/d/key").st_mode & 0o7777 == 0o600)
        #expect(try status("closed/d").st_mode & 0o7777 == 0o700)
        // The rule holds for a file that is written anew, too.
        #expect(chmod(directory.path(of: "open/d/key"), 0o660) == 0)
        #expect(try statectl("set", "o/d/key", "3").exitCode == 0)
        #expect(try status("open/d/key").st_mode & 0o7777 == 0o640)
        try end(program)
    }

    /// A mount namespace has units of its own.
    @Test(.enabled(if: RuleFileTests.canMount)) func `a check takes the user of the unit`() throws {
        let place = directory.path(of: "d")
        #expect(mkdir(place, 0o700) == 0)
        chmod(directory.path, 0o755)
        let text = "{ rules: [ { keys: 'a/', backing: 'file', directory: '\(place)' } ] }"
        let path = try directory.write(text, to: "c.json5")
        chmod(path, 0o644)
        let units = directory.path(of: "units")
        #expect(mkdir(units, 0o755) == 0 && mkdir("\(units)/stated.service.d", 0o755) == 0)
        try directory.write("[Service]\nUser=root\n", to: "units/stated.service")
        func check() throws -> CommandResult {
            try runCommand(
                "unshare",
                [
                    "--mount", "sh", "-c",
                    "mount --bind \(units) /etc/systemd/system && exec \(builtProgram("stated")) --check-config \(path)",
                ]
            )
        }
        #expect(try check().exitCode == 0)
        try directory.write("[Service]\nUser=nobody\n", to: "units/stated.service.d/user.conf")
        let result = try check()
        #expect(
            result.exitCode == 2 && result.errorText.contains("rules[1].directory: "),
            "\(result)"
        )
    }

    private static let canMount =
        geteuid() == 0 && access("/etc/systemd/system", R_OK) == 0
        && (try? runCommand(
            "unshare",
            ["--mount", "mount", "--bind", "/tmp", "/etc/systemd/system"]
        ))?.exitCode == 0
}
