import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// The files of a store while a daemon has them open: nothing is acknowledged that the next start would not find.
struct StoreFileTests {
    private let daemon: Daemon
    private let client: Client

    init() throws {
        daemon = try Daemon()
        client = try daemon.connect()
        for number in 0..<20 { try client.set([1], for: Key(verified: "key/\(number)")) }
    }

    private func status(_ name: String) throws -> String? {
        try client.status().first { $0.name == name }?.text
    }

    @Test(arguments: ["stated.db", "stated.db-wal", "log/1.log"])
    func `never silent about storage: a commit into a file that was removed is refused`(
        file: String
    ) throws {
        #expect(try status("store") == "ok")
        let path = "\(daemon.dataPath)/\(file)"
        #expect(unlink(path) == 0)
        #expect(try status("store")?.hasPrefix("\(path) is missing") == true)
        let refusal = #expect(throws: StateError.self) { try client.set([2], for: "key/1") }
        #expect(refusal?.code == .readOnly)
        #expect(refusal?.message.contains("\(path) is missing") == true)
        // Until it is back, or the daemon is started again: each refusal and the log say what to do.
        let next = #expect(throws: StateError.self) { try client.set([3], for: "key/2") }
        #expect(next?.message.contains("\(path) is missing") == true)
        #expect(next?.message.contains("restart with the intended files") == true)
        #expect(eventually { daemon.log.contains("\(path) is missing") })
        #expect(try status("storage") != "ok")
        // A stop that cannot vouch for what was stored is no clean one.
        #expect(try daemon.stop() == 5)
    }

    @Test
    func `durable before acknowledged: a prepared file of the log that was removed is not used`()
        throws
    {
        let spare = "\(daemon.dataPath)/log/2.log"
        #expect(eventually { access(spare, F_OK) == 0 })
        #expect(unlink(spare) == 0)
        try client.set([2], for: "key/0")
        // More than the segment has room for.
        let value = [UInt8](repeating: 7, count: 100_000)
        for number in 0..<15 { try client.set(value, for: Key(verified: "long/\(number)")) }
        daemon.kill()
        try daemon.start()
        let next = try daemon.connect()
        for number in 0..<15 {
            #expect(try next.value(for: Key(verified: "long/\(number)")) == value)
        }
        try daemon.stop()
    }

    @Test func `a data directory that goes away and comes back loses nothing`() throws {
        let away = daemon.directory.path(of: "away")
        #expect(rename(daemon.dataPath, away) == 0)
        #expect(throws: StateError.self) { try client.set([2], for: "key/1") }
        #expect(throws: StateError.self) { try client.set([2], for: "key/2") }
        #expect(try client.value(for: "key/3") == [1])
        #expect(rename(away, daemon.dataPath) == 0)
        #expect(eventually { (try? client.set([3], for: "key/4")) != nil })
        #expect(try status("store") == "ok" && status("storage") == "ok")
        let values = try (0..<20).map { try client.value(for: Key(verified: "key/\($0)")) }
        daemon.kill()
        try daemon.start()
        let next = try daemon.connect()
        #expect(try (0..<20).map { try next.value(for: Key(verified: "key/\($0)")) } == values)
        #expect(values[4] == [3] && values[3] == [1])
        try daemon.stop()
    }

    @Test func `another file in the place of the database is not written to`() throws {
        let path = "\(daemon.dataPath)/stated.db"
        #expect(rename(path, daemon.directory.path(of: "away")) == 0)
        try daemon.directory.write("somebody's", to: "other")
        #expect(rename(daemon.directory.path(of: "other"), path) == 0)
        let refusal = #expect(throws: StateError.self) { try client.set([2], for: "key/1") }
        #expect(refusal?.message.contains("\(path) was replaced by another file") == true)
        #expect(try daemon.stop() == 5)
        #expect(try readFile(path) == Array("somebody's".utf8))
    }

    @Test func `one authority: who removes the lock file lets no second daemon in`() throws {
        #expect(unlink("\(daemon.dataPath)/lock") == 0)
        let owner = "\(daemon.dataPath)/stated.db is owned by process \(daemon.pid)"
        for arguments in [
            ["--socket", daemon.directory.path(of: "s2"), "--data", daemon.dataPath],
            ["--salvage", "--data", daemon.dataPath, "--to", daemon.directory.path(of: "copy")],
        ] {
            let second = try runCommand(builtProgram("stated"), arguments)
            #expect(second.exitCode == 3 && second.errorText.contains(owner), "\(second)")
        }
        try client.set([2], for: "key/1")
        try daemon.stop()
        try daemon.start()
        #expect(try daemon.connect().value(for: "key/1") == [2])
        try daemon.stop()
    }

    /// Each start gives the store another life, in the log and in the database; a kill between any two writes
    /// changes nothing.
    @Test(
        .enabled(if: isInstalled("strace"), "strace is not installed"),
        arguments: (11...16).map { "pwrite64:\($0)" } + ["fdatasync:2", "fsync:1"]
    )
    func `two starts that are killed leave it the store that it was`(first: String) throws {
        let epoch = try status("epoch")
        let revision = try client.status().first { $0.name == "revision" }?.number
        for second in ["pwrite64:11", "pwrite64:14", "fdatasync:1", "fdatasync:3", "fsync:1"] {
            daemon.kill()
            for place in [first, second] {
                let parts = place.split(separator: ":")
                let killed = try runCommand(
                    "strace",
                    [
                        "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(parts[0])", "-e",
                        "inject=\(parts[0]):signal=SIGKILL:when=\(parts[1])",
                        builtProgram("stated"), "--socket", daemon.directory.path(of: "s3"),
                        "--data", daemon.dataPath,
                    ]
                )
                #expect(killed.exitCode == 128 + SIGKILL, "\(place): \(killed)")
            }
            try daemon.start()
            let next = try daemon.connect().status()
            let isSame =
                next.first { $0.name == "epoch" }?.text == epoch
                && next.first { $0.name == "revision" }?.number == revision
            #expect(isSame, "\(first), \(second): \(daemon.log)")
        }
    }
}
