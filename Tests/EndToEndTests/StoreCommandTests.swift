import Glibc
import StateTestSupport
import Testing

/// `stated --check`, `stated --salvage` and `statectl check`, as a person runs them.
struct StoreCommandTests {
    let daemon: Daemon
    let stated = builtProgram("stated")

    init() throws {
        daemon = try Daemon()
        for value in ["0.7", "the newest value"] {
            try #require(try Statectl.run(daemon, "set", "audio/volume", value).exitCode == 0)
        }
        try #require(try Statectl.run(daemon, "set", "other", "1").exitCode == 0)
    }

    /// Stops the daemon and turns a bit of a value over.
    private func damage() throws {
        try daemon.stop()
        let database = daemon.dataPath + "/stated.db"
        var bytes = try readFile(database)
        let value = Array("the newest value".utf8)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: value) })
        bytes[place] ^= 0x20
        try write(bytes, to: database)
    }

    @Test func `a check beside the daemon finds nothing and the daemon goes on`() throws {
        let summary = "rows 3, entries 2, revision 3: nothing is wrong\n"
        let direct = try runCommand(stated, ["--check", "--data", daemon.dataPath])
        #expect(direct.exitCode == 0 && direct.text == summary, "\(direct)")
        #expect(direct.error.isEmpty)
        let result = try Statectl.run(["check", "--data", daemon.dataPath])
        #expect(result.exitCode == 0 && result.text == summary, "\(result)")
        let own = try Statectl.run(
            ["check", "--store"],
            environment: ["STATE_DIRECTORY": daemon.dataPath]
        )
        #expect(own.exitCode == 0 && own.text == summary, "\(own)")
        #expect(try Statectl.run(daemon, "set", "other", "2").exitCode == 0)
    }

    @Test func `the daemon that refuses a store names the command, which gives what is whole`()
        throws
    {
        try damage()
        let files = try readFile(daemon.dataPath + "/stated.db")
        let start = try Program([stated, "--socket", daemon.socketPath, "--data", daemon.dataPath])
        #expect(try start.end() == 5)
        let parts = start.errors.split(separator: "`")
        try #require(parts.count == 3, "\(start.errors)")
        let target = daemon.directory.path(of: "new")
        let command = parts[1].split(separator: " ").map(String.init)
        try #require(command.first == "stated" && command.last == "NEWDIRECTORY")

        let check = try Statectl.run(["check", "--data", daemon.dataPath])
        #expect(check.exitCode == 5)
        #expect(check.lines.first == "the row of key 'audio/volume' does not match its checksum")
        #expect(
            check.lines.last?.contains("revision 3: 1 problem; `stated --sal") == true,
            "\(check)"
        )

        let salvage = try runCommand(stated, command.dropFirst().dropLast() + [target])
        // The log has the value, too.
        #expect(salvage.exitCode == 0)
        #expect(
            salvage.text.contains(
                "key 'audio/volume', apparently revision 2; the newest intact version of that key has "
                    + "revision 2\n"
            )
        )
        #expect(
            salvage.lines.last?.hasSuffix("every row was intact; the new store is in \(target)")
                == true
        )
        #expect(try readFile(daemon.dataPath + "/stated.db") == files)

        let socket = daemon.directory.path(of: "other")
        let next = try Program([stated, "--socket", socket, "--data", target])
        try next.waitForErrors(containing: " serves ")
        #expect(
            try Statectl.run(["--socket", socket, "get", "audio/volume"]).text
                == "the newest value\n"
        )
        #expect(try Statectl.run(["--socket", socket, "get", "other"]).text == "1\n")
        #expect(try Statectl.run(["check", "--data", target]).exitCode == 0)
    }

    @Test func `a store that is whole is salvaged with exit 0, once for each directory`() throws {
        try daemon.stop()
        let target = daemon.directory.path(of: "new")
        let arguments = ["--salvage", "--data=\(daemon.dataPath)", "--to=\(target)"]
        let first = try runCommand(stated, arguments)
        #expect(first.exitCode == 0)
        #expect(
            first.text
                == "rows 3, entries 2, revision \(3 + 1 << 32): every row was intact; the new "
                + "store is in \(target)\n"
        )
        let second = try runCommand(stated, arguments)
        #expect(second.exitCode == 5)
        #expect(second.errorText.contains("there is a store in \(target) already"))
    }

    @Test func `a store that a daemon owns is not salvaged`() throws {
        let target = daemon.directory.path(of: "new")
        let result = try runCommand(
            stated,
            ["--salvage", "--data", daemon.dataPath, "--to", target]
        )
        #expect(result.exitCode == 3)
        #expect(result.errorText.contains("owned by process \(daemon.pid)"))
        #expect(fileStatus(target) == nil)
    }

    @Test(arguments: [
        (["--salvage"], "--salvage needs --to"), (["--to", "/tmp/x"], "--to needs --salvage"),
        (["--check", "--to", "/tmp/x"], "--to needs --salvage"),
        (["--check", "--memory"], "--check does not work with --memory"),
        (["--check=yes"], "--check takes no value"),
    ])
    func `what makes no sense exits 2 and names it`(arguments: [String], part: String) throws {
        let result = try runCommand(stated, arguments)
        #expect(result.exitCode == 2)
        #expect(result.errorText.contains(part), "\(result)")
    }

    @Test func `no store exits 5 and is named`() throws {
        let none = daemon.directory.path(of: "none")
        for arguments in [["--check"], ["--salvage", "--to", none + "/new"]] {
            let result = try runCommand(stated, ["--data", none] + arguments)
            #expect(result.exitCode == 5)
            #expect(result.errorText.contains(none), "\(result)")
        }
        #expect(fileStatus(none) == nil)
    }

    @Test func `statectl alone runs the daemon's program of PATH, or says that there is none`()
        throws
    {
        let alone = try TemporaryDirectory()
        let statectl = alone.path(of: "statectl")
        _ = try runCommand("cp", [builtProgram("statectl"), statectl])
        let arguments = ["check", "--data", daemon.dataPath]
        let directory = String(stated.dropLast("/stated".count))
        let found = try runCommand(statectl, arguments, environment: ["PATH": directory])
        #expect(found.exitCode == 0 && found.text.contains("nothing is wrong"), "\(found)")
        let missing = try runCommand(statectl, arguments, environment: ["PATH": alone.path])
        #expect(missing.exitCode == 2)
        let sentence = "cannot run 'stated --check': No such file or directory"
        #expect(missing.errorText == "statectl: \(sentence)\n")
    }
}
