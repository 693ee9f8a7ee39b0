import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A daemon that was killed, and a disk that turned a byte of its log over: what was acknowledged is not given up in silence.
struct DamagedLogTests {
    static let count = 500
    let daemon: Daemon
    let stated = builtProgram("stated")
    private var log: String { daemon.dataPath + "/log/1.log" }

    init() throws {
        daemon = try Daemon()
        let client = try daemon.connect()
        for number in 1...DamagedLogTests.count {
            let key = Key(verified: "key/\(number)")
            try #require(
                try client.set(Array("\(number)".utf8), for: key).revision == Int64(number)
            )
        }
        daemon.kill()
    }

    /// Bytes of the log in use: zeros follow.
    private func usedByteCount(_ bytes: [UInt8]) -> Int { (bytes.lastIndex { $0 != 0 } ?? 0) + 1 }

    /// Turns a byte over, in the same file.
    private func flip(_ place: Int) throws {
        let descriptor = open(log, O_RDWR | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var byte: UInt8 = 0
        try #require(pread(descriptor, &byte, 1, off_t(place)) == 1)
        byte ^= 0xFF
        try #require(pwrite(descriptor, &byte, 1, off_t(place)) == 1)
    }

    /// The bytes of all files of the store, but for the index of SQLite's own log, which it makes anew.
    private func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in ["stated.db", "stated.db-wal", "log/1.log"] {
            files[name] = try readFile(daemon.dataPath + "/" + name)
        }
        return files
    }

    @Test func `without the log of a killed daemon, the check says what is missing`() throws {
        let target = daemon.directory.path(of: "copy")
        try #require(mkdir(target, 0o755) == 0)
        for name in ["stated.db", "stated.db-wal"] {
            try write(readFile(daemon.dataPath + "/" + name), to: target + "/" + name)
        }
        let check = try runCommand(stated, ["--check", "--data", target])
        #expect(check.exitCode == 5, "\(check)")
        #expect(check.text.contains("the log, \(target)/log, is missing"), "\(check)")
    }

    @Test(arguments: [0.3, 0.6, 0.95], [0, 3])
    func
        `one byte of the log of a killed daemon: the start is refused, the check finds it, a salvage gives the rest`(
            part: Double,
            byte: Int
        ) throws
    {
        let used = usedByteCount(try readFile(log))
        try #require(used > DamagedLogTests.count * 40)
        try flip(Int(Double(used) * part) / 4 * 4 + byte)
        let before = try files()

        let start = try Program([stated, "--socket", daemon.socketPath, "--data", daemon.dataPath])
        #expect(try start.end() == 5)
        #expect(
            start.errors.contains("\(daemon.dataPath)/log: the log is damaged at segment 1, byte ")
        )
        #expect(start.errors.contains("stated --salvage"))
        #expect(try files() == before)

        let check = try runCommand(stated, ["--check", "--data", daemon.dataPath])
        #expect(check.exitCode == 5, "\(check)")
        #expect(check.text.contains("the log is damaged at segment 1, byte "), "\(check)")
        #expect(try files() == before)

        let target = daemon.directory.path(of: "new")
        let salvage = try runCommand(
            stated,
            ["--salvage", "--data", daemon.dataPath, "--to", target]
        )
        #expect(salvage.exitCode == 5, "\(salvage)")
        #expect(salvage.text.contains("1.log of the log is damaged from byte "), "\(salvage)")
        #expect(try files() == before)
        let socket = daemon.directory.path(of: "other")
        let next = try Program([stated, "--socket", socket, "--data", target])
        try next.waitForErrors(containing: " serves ")
        // One frame is lost, which has one key.
        let list = try Statectl.run(["--socket", socket, "list", "--count"])
        #expect(list.text == "\(DamagedLogTests.count - 1)\n", "\(list)")
        for number in [1, DamagedLogTests.count] {
            let result = try Statectl.run(["--socket", socket, "get", "key/\(number)"])
            #expect(result.text == "\(number)\n")
        }
    }

    /// The header is there twice, and the file is made at its full length, of zeros.
    @Test func `a byte of one header, or behind the end of the log, changes nothing`() throws {
        let bytes = try readFile(log)
        let used = usedByteCount(bytes)
        try #require(bytes.count > used + 8_192)
        try flip(40)
        try flip(used + 4_200)
        try flip(bytes.count - 1)
        try daemon.start()
        let client = try daemon.connect()
        #expect(try client.status().first { $0.name == "revision" }?.number == 500)
        #expect(try client.value(for: "key/500") == Array("500".utf8))
        #expect(!daemon.log.contains("a new epoch"))
    }
}
