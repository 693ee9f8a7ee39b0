import Glibc
import StateClient
import StateEngine
import StateModel
import StateTestSupport
import Testing

/// `statectl backup` and `stated --restore`, as a person runs them.
struct BackupTests {
    private let daemon: Daemon
    private var directory: TemporaryDirectory { daemon.directory }
    private let stated = builtProgram("stated")

    init() throws { daemon = try Daemon() }

    private func path(_ name: String) -> String { directory.path(of: name) }

    private func run(_ arguments: String...) throws -> CommandResult {
        try Statectl.run(["--socket", daemon.socketPath] + arguments)
    }

    private func restore(_ files: String..., to target: String) throws -> CommandResult {
        let files = files.flatMap { ["--restore", path($0)] }
        return try runCommand(stated, files + ["--data", path(target)])
    }

    /// What a store shows of itself: entries with owners and revisions, deadlines, history, handlers.
    private func contents(_ socket: String, keys: [String]) throws -> [String] {
        let all = [["list", "--long"]] + keys.flatMap { [["get", $0, "--json"], ["blame", $0]] }
        return try all.map { try Statectl.run(["--socket", socket] + $0).description }
    }

    /// Serves a restored store.
    private func serve<R>(_ target: String, _ body: (String) throws -> R) throws -> R {
        let socket = path(target + ".socket")
        let program = try Program([stated, "--socket", socket, "--data", path(target)])
        try program.waitForErrors(containing: " serves ")
        return try body(socket)
    }

    private func fill() throws -> [String] {
        let client = try daemon.connect()
        for number in 0..<300 {
            let key = try Key("k/\(number % 70)")
            try client.set(Array("value \(number)\n\0".utf8), for: key)
        }
        try client.set([], for: "empty")
        try client.set([0xFF, 0x00], for: "bytes", expiresAfter: .seconds(3_600))
        _ = try client.delete(["k/1", "k/2"])
        try client.set([1], for: "k/2")
        return (0..<5).map { "k/\($0)" } + ["empty", "bytes"]
    }

    @Test
    func `a restored store has the values, owners, deadlines, revisions, history and handlers`()
        throws
    {
        let keys = try fill()
        let handler = try run(
            "watch",
            "k/",
            "--name",
            "h",
            "--count",
            "1",
            "--from",
            "1",
            "--",
            "true"
        )
        #expect(handler.exitCode == 0, "\(handler)")
        let made = try run("backup", path("b"))
        #expect(made.exitCode == 0 && made.text.hasPrefix("everything at revision "), "\(made)")
        #expect(try run("backup", "--verify", path("b")).text == made.text)
        let mode = try #require(fileStatus(path("b"))).st_mode
        #expect(mode & 0o777 == 0o600)
        let before = try contents(daemon.socketPath, keys: keys)
        let epoch = try daemon.connect().status().first { $0.name == "epoch" }?.text

        let restored = try restore("b", to: "new")
        #expect(restored.exitCode == 0 && restored.text.hasPrefix("rows 305, entries 71, "))
        #expect(try runCommand(stated, ["--check", "--data", path("new")]).exitCode == 0)
        try serve("new") { socket in
            #expect(try contents(socket, keys: keys) == before)
            let handlers = try Statectl.run(["--socket", socket, "handlers", "--json"])
            #expect(handlers.text.contains("\"name\":\"h\"") && handlers.text.contains("\"k/\""))
            let client = try Client(socket: socket)
            let status = try client.status()
            #expect(status.first { $0.name == "epoch" }?.text != epoch)
            let revision = try #require(status.first { $0.name == "revision" }?.number)
            #expect(revision > 1 << 32)
            try client.set([2], for: "k/2")
        }
        let again = try restore("b", to: "new")
        #expect(again.exitCode == 5 && again.errorText.contains("new exists"))
    }

    @Test func `a backup without history has the values alone`() throws {
        let keys = try fill()
        let made = try run("backup", path("b"), "--no-history")
        #expect(made.text.hasPrefix("the present values at revision "), "\(made)")
        let list = try run("list", "--long").text
        let restored = try restore("b", to: "new")
        #expect(restored.text.hasPrefix("rows 71, entries 71, "), "\(restored)")
        try serve("new") { socket in
            #expect(try Statectl.run(["--socket", socket, "list", "--long"]).text == list)
            let history = try Statectl.run(["--socket", socket, "history", keys[0]])
            #expect(history.lines.count == 1)
            #expect(try Statectl.run(["--socket", socket, "get", "k/1"]).exitCode == 1)
        }
    }

    @Test func `the changes since a backup are restored on top of it`() throws {
        let keys = try fill()
        try #require(run("backup", path("b")).exitCode == 0)
        for number in 0..<50 { try #require(run("set", "k/\(number)", "new").exitCode == 0) }
        try #require(run("delete", "empty").exitCode == 0)
        let made = try run("backup", path("c"), "--since", path("b"))
        #expect(made.exitCode == 0 && made.text.contains(": 51 rows,"), "\(made)")
        let before = try contents(daemon.socketPath, keys: keys)
        #expect(try restore("b", "c", to: "new").exitCode == 0)
        let after = try serve("new") { try contents($0, keys: keys) }
        #expect(after == before)

        let alone = try restore("c", to: "other")
        #expect(alone.exitCode == 2 && alone.errorText.contains("name the whole backup before it"))
        #expect(fileStatus(path("other")) == nil)
        try #require(run("compact", "--to", "355").exitCode == 0)
        let late = try run("backup", path("d"), "--since", path("b"))
        #expect(late.exitCode == 5 && late.errorText.contains("COMPACTED"), "\(late)")
        #expect(fileStatus(path("d")) == nil)
    }

    private func readBackup(_ path: String) throws {
        let reader = try BackupReader(path: path)
        while try reader.next() != nil {}
    }

    @Test func `each flipped bit of a backup is refused by name, and nothing is restored`() throws {
        _ = try fill()
        try #require(run("backup", path("b")).exitCode == 0)
        let whole = try readFile(path("b"))
        var random = SplitMix(seed: 23)
        for _ in 0..<1_000 {
            let place = Int.random(in: whole.indices, using: &random)
            var bytes = whole
            bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            try write(bytes, to: path("flipped"))
            let error = #expect(throws: StateError.self) { try readBackup(path("flipped")) }
            #expect(error?.message.contains(path("flipped")) == true, "byte \(place)")
        }
        for count in [0, 10, 100, whole.count - 1] {
            try write(Array(whole.prefix(count)), to: path("flipped"))
            let check = try run("backup", "--verify", path("flipped"))
            #expect(check.exitCode == 5 && check.errorText.contains(path("flipped")), "\(check)")
            let restored = try restore("flipped", to: "new")
            #expect(restored.exitCode == 5 && restored.errorText.contains(path("flipped")))
            #expect(fileStatus(path("new")) == nil)
        }
    }

    @Test func `a backup is of one revision while writers write and the history is compacted`()
        throws
    {
        let client = try daemon.connect()
        let values = try (0..<20_000).map { (key: try Key("k/\($0)"), value: Array("0".utf8)) }
        for start in stride(from: 0, to: values.count, by: 1_000) {
            try client.set(Array(values[start..<start + 1_000]))
        }
        let isDone = path("done")
        let (socket, target) = (daemon.socketPath, path("b"))
        onThreads(3) { number in
            guard number > 0 else {
                let made = try? Statectl.run(["--socket", socket, "backup", target])
                #expect(made?.exitCode == 0, "\(made?.errorText ?? "it did not run")")
                _ = try? write([1], to: isDone)
                return
            }
            // Each commit changes two keys that are far apart to the same value.
            guard let client = try? Client(socket: socket) else { return }
            var random = SplitMix(seed: UInt64(number))
            while fileStatus(isDone) == nil {
                let (left, value) = (Int.random(in: 0..<10_000, using: &random), random.next())
                let steps = [left, 19_999 - left].map {
                    (key: Key(verified: "k/\($0)"), value: Array("\(value)".utf8))
                }
                _ = try? client.set(steps)
                _ = try? client.compact(to: nil, shrinks: false)
            }
        }
        let restored = try restore("b", to: "new")
        #expect(restored.exitCode == 0, "\(restored)")
        let revision = try #require(BackupReader(path: path("b")).head.number("revision"))
        let then = try run("list", "--long", "--at", "\(revision)").text
        try serve("new") { socket in
            let now = try Statectl.run(["--socket", socket, "list", "--long"])
            #expect(now.text == then)
            let values = try Statectl.run(["--socket", socket, "list"]).lines
                .map { $0.split(separator: " = ") }
                .reduce(into: [Substring: Substring]()) { $0[$1[0]] = $1[1] }
            #expect(values.count == 20_000)
            for left in 0..<10_000 where values["k/\(left)"] != values["k/\(19_999 - left)"] {
                Issue.record("k/\(left) and k/\(19_999 - left) are of different revisions")
            }
        }
    }

    @Test func `while a backup is read, nothing is compacted, and somebody who asks is refused`()
        throws
    {
        _ = try fill()
        let reader = try daemon.connect()
        _ = try reader.beginBackup()
        let refused = try run("compact")
        #expect(refused.exitCode == 4 && refused.errorText.contains("a backup is being made"))
        #expect(refused.errorText.contains(" s if its client has stopped reading"), "\(refused)")
        #expect(try run("status").text.contains("a backup is being made; it ends in "))
        #expect(try reader.nextBackupPiece() != nil)
        while try reader.nextBackupPiece() != nil {}
        #expect(throws: StateError.self) { try reader.nextBackupPiece() }
        let status = try run("status").text
        #expect(status.contains("settling:              ok\n"))
        #expect(!status.contains("compaction_pause"))
    }

    @Test(arguments: ["b", "./b", "hard", "symbolic"])
    func `a backup does not replace the one that it continues`(name: String) throws {
        try #require(run("backup", path("b")).exitCode == 0)
        try #require(link(path("b"), path("hard")) == 0)
        try #require(symlink("b", path("symbolic")) == 0)
        let before = try readFile(path("b"))
        let refused = try run("backup", path(name), "--since", path("b"))
        #expect(refused.exitCode == 2 && refused.errorText.contains("the same file"), "\(refused)")
        #expect(try readFile(path("b")) == before)
        #expect(try readFile(path(name)) == before)
    }

    @Test func `keys in memory only are not in a backup, and do not count`() throws {
        let configuration = #"{rules: [{keys: "run/", backing: "memory"}]}"#
        try write(Array(configuration.utf8), to: path("memory.json5"))
        let daemon = try Daemon("--config", path("memory.json5"))
        let client = try daemon.connect()
        for key in ["run/a", "run/b", "kept/a", "kept/b"] as [Key] { try client.set([1], for: key) }
        try client.set([2], for: "run/a")
        _ = try client.delete(["run/b", "kept/b"])
        let begun = try client.beginBackup()
        #expect(begun.keyCount == 1)
        let made = try Statectl.run(daemon, "backup", path("b"))
        #expect(made.exitCode == 0, "\(made)")
        #expect(try Statectl.run(["backup", "--verify", path("b")]).exitCode == 0)
        #expect(try restore("b", to: "new").text.contains("entries 1,"))
    }

    @Test func `a device and a pipe are written to, and a failed backup leaves the old file`()
        throws
    {
        _ = try fill()
        #expect(try run("backup", "/dev/null").exitCode == 0)
        let null = try #require(fileStatus("/dev/null"))
        #expect(null.st_mode & S_IFMT == S_IFCHR)
        let piped = try run("backup", "/dev/stdout")
        let text = Array("stated backup 1\n".utf8)
        #expect(piped.output.starts(with: text))
        let direct = try run("backup", "-")
        #expect(try Statectl.run(["backup", "--verify", "-"], input: direct.output).exitCode == 0)
        try write([1, 2, 3], to: path("b"))
        try daemon.stop()
        #expect(try run("backup", path("b")).exitCode == 3)
        #expect(try readFile(path("b")) == [1, 2, 3])
        let full = try run("backup", "/dev/full")
        #expect(full.exitCode != 0)
    }

    @Test(.enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"))
    func `a restore on a full disk leaves nothing`() throws {
        let client = try daemon.connect()
        for number in 0..<40 {
            try client.set(Array(repeating: 7, count: 1 << 20), for: try Key("k/\(number)"))
        }
        try #require(run("backup", path("b")).exitCode == 0)
        let disk = try SmallFileSystem(at: path("disk"))
        let restored = try runCommand(
            stated,
            ["--restore", path("b"), "--data", path("disk/new")]
        )
        #expect(restored.exitCode == 5 && restored.errorText.contains("full"), "\(restored)")
        #expect(fileStatus(path("disk/new")) == nil)
        withExtendedLifetime(disk) {}
    }

    @Test func `a daemon with values in memory has nothing to back up, and says what to do`() throws
    {
        let daemon = try Daemon("--memory")
        let refused = try Statectl.run(daemon, "backup", path("b"))
        #expect(refused.exitCode == 2 && refused.errorText.contains("statectl export"))
        #expect(fileStatus(path("b")) == nil)
    }
}
