import Glibc
import StateClient
import StateTestSupport
import Testing

/// The table of exit codes, for every verb that writes.
struct ExitCodeTests {
    /// The operands and options with which each verb prints something; nil if it prints nothing itself.
    ///
    /// There are the keys k and n, a lock, a handler, a watch and a rule.
    private static let printing: [String: String?] = [
        "get": "k", "set": "k v --json", "incr": "n", "txn": "- --json", "expire": "k 1h --json",
        "ttl": "k", "persist": "n --json", "delete": "absent", "edit": "k", "list": "",
        "tree": "", "watch": "k --snapshot --count 1", "wait": "k --json", "handlers": "",
        "import": "-", "export": "", "reset": "absent", "apply": "- --json", "backup": "-",
        "convert": "k -- cat", "history": "k", "blame": "k", "diff": "0",
        "revert": "n --to 1", "locks": "", "compact": "", "sync": "", "ping": "",
        "status": "", "health": "", "top": "--once --interval 100ms", "metrics": "",
        "watches": "", "check": "", "explain": "k", "rules": "", "reload": "",
        "check-config": "", "complete": "-- g", "help": "", "exists": "k --json", "cp": "k other",
        "mv": "k other", "version": "", "completion": "bash",
        // Standard output is that of the command.
        "lock": nil, "elect": nil, "service": nil,
        // It answers systemd through a socket.
        "credential": nil,
    ]

    private let daemon: Daemon
    private let holder: RunningCommand
    private let watch: RunningCommand

    init() throws {
        let directory = try TemporaryDirectory()
        try directory.write("{ rules: [{ keys: 'r', readonly: true }] }", to: "c")
        daemon = try Daemon(["--config", directory.path(of: "c")], directory: directory)
        for (key, value) in [("k", "1"), ("n", "1")] {
            try #require(Statectl.run(daemon, "set", key, value).exitCode == 0)
        }
        let handled = try Statectl.run(
            daemon,
            "watch",
            "k",
            "--name",
            "h",
            "--from",
            "0",
            "--count",
            "1",
            "--",
            "true"
        )
        try #require(handled.exitCode == 0, "\(handled)")
        holder = try Statectl.start(daemon, "lock", "l", "--", "sh", "-c", "echo; exec sleep 600")
        _ = try holder.nextLine()
        watch = try Statectl.start(daemon, "watch", "k", "--snapshot")
        _ = try watch.nextLine()
    }

    private var statectl: String { builtProgram("statectl") }

    private func shell(
        _ script: String,
        _ variables: [String: String] = [:]
    ) throws -> CommandResult {
        try runCommand(
            "sh",
            ["-c", script],
            environment: [
                "STATED_SOCKET": daemon.socketPath, "VISUAL": "true", "statectl": statectl,
                "d": daemon.directory.path,
            ].merging(variables) { $1 }
        )
    }

    @Test func `each verb is in this table`() {
        #expect(Set(VerbRow.all.map(\.verb) + ["help"]) == Set(ExitCodeTests.printing.keys))
    }

    @Test(
        arguments: printing.sorted { $0.key < $1.key }.compactMap { row in
            row.value.map { (row.key, $0) }
        }
    )
    func `a verb whose output a full device does not take exits 5`(
        verb: String,
        operands: String
    ) throws {
        let input = ["import": "a = 1", "txn": "set a = 1", "apply": "{ a: 1 }"][verb] ?? ""
        let words = verb == "help" ? "--help" : "\(verb) \(operands)"
        let result = try shell(
            "printf '%s' \"$input\" | $statectl \(words) > /dev/full",
            ["input": input]
        )
        #expect(result.exitCode == 5, "\(result)")
        #expect(result.errorText.contains("standard output"), "\(result)")
        #expect(result.errorText.contains("No space left on device"), "\(result)")
    }

    /// What each verb that makes a file is given.
    private static let writing = [
        "backup": "$d/b", "metrics": "--textfile $d/b", "edit": "k",
    ]

    @Test(arguments: writing.sorted { $0.key < $1.key })
    func `a verb whose file cannot be written exits 5, names it and leaves nothing`(
        verb: String,
        operands: String
    ) throws {
        let before = try shell("mkdir $d/tmp; ls $d $d/tmp").text
        // A file of no bytes, whoever this is: a full disk takes root.
        let script = "trap '' XFSZ; ulimit -f 0; TMPDIR=$d/tmp exec $statectl \(verb) \(operands)"
        let result = try shell(script)
        #expect(result.exitCode == 5, "\(result)")
        #expect(result.errorText.contains("\(daemon.directory.path)/"), "\(result)")
        #expect(result.errorText.contains("cannot be written: File too large"), "\(result)")
        #expect(try shell("ls $d $d/tmp").text == before)
    }

    @Test(arguments: ["backup /none/b", "metrics --textfile /none/b", "edit k"])
    func `a verb whose file cannot be made exits 5`(words: String) throws {
        let result = try shell("TMPDIR=/none exec $statectl \(words)")
        #expect(result.exitCode == 5, "\(result)")
        #expect(result.errorText.contains("No such file or directory"), "\(result)")
    }

    @Test func `a backup to a full device exits 5`() throws {
        let result = try Statectl.run(daemon, "backup", "/dev/full")
        #expect(result.exitCode == 5)
        #expect(result.errorText.contains("/dev/full cannot be written: No space left on device"))
    }

    @Test func `a backup that nobody reads to its end is no success`() throws {
        let result = try shell("{ $statectl backup -; echo $? >&2; } | true")
        #expect(result.errorText.hasSuffix("standard output cannot be written: Broken pipe\n5\n"))
    }

    @Test func `a file that cannot be read exits 2, a damaged one 5`() throws {
        try daemon.directory.write("no backup", to: "b")
        for words in ["import $d/none", "txn $d/none", "apply $d/none", "backup --verify $d/none"] {
            let result = try shell("$statectl \(words)")
            #expect(
                result.exitCode == 2 && result.errorText.contains("none cannot be opened"),
                "\(result)"
            )
        }
        #expect(try shell("$statectl backup --verify $d/b").exitCode == 5)
    }

    @Test func `the guide has the exit codes of the help, in its words`() throws {
        let help = try Statectl.run(["get", "--help"]).text
        let table = try #require(help.text(after: "exit codes:\n"))
        let rows = table.split(separator: "\n").prefix { $0.hasPrefix("  ") }
        #expect(rows.count == 7)
        let guide = String(decoding: try readFile(packageRoot + "/docs/guide.md"), as: UTF8.self)
        for row in rows {
            let (code, meaning) = (row.dropFirst(2).prefix(1), row.dropFirst(5))
            #expect(guide.contains("| \(code) | \(meaning) |"), "\(row)")
        }
    }
}

extension String {
    fileprivate func text(after text: String) -> Substring? {
        firstRange(of: text).map { self[$0.upperBound...] }
    }
}
