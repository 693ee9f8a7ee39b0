import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A daemon that was killed, and a disk that turned a byte of its log over: what was acknowledged is not given up in silence.
struct DamagedLogTests {
    static let count = 500
    /// Of the log: a page and its header.
    private static let frameByteCount = 4_096 + 24

    let daemon: Daemon
    let stated = builtProgram("stated")
    private var log: String { daemon.dataPath + "/stated.db-wal" }

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

    /// Bytes of the log in use: the frames with the salts of its header.
    private func usedByteCount(_ bytes: [UInt8]) -> Int {
        var end = 32
        while end + DamagedLogTests.frameByteCount <= bytes.count,
            bytes[end + 8..<end + 16] == bytes[16..<24]
        {
            end += DamagedLogTests.frameByteCount
        }
        return end
    }

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

    /// The bytes of all files of the store, but for the index of the log, which SQLite makes anew.
    private func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in ["stated.db", "stated.db-wal", "stated.db-mark"] {
            files[name] = try readFile(daemon.dataPath + "/" + name)
        }
        return files
    }

    @Test func `without the log of a killed daemon, the check says what is missing`() throws {
        let target = daemon.directory.path(of: "copy")
        try #require(mkdir(target, 0o755) == 0)
        for name in ["stated.db", "stated.db-mark"] {
            try write(readFile(daemon.dataPath + "/" + name), to: target + "/" + name)
        }
        let check = try runCommand(stated, ["--check", "--data", target])
        #expect(check.exitCode == 5, "\(check)")
        #expect(check.text.contains("records revision 500 as acknowledged"), "\(check)")
        #expect(check.text.contains("is \(target)/stated.db-wal missing?"), "\(check)")
    }

    /// Somewhere in the log; the lowest byte of a word, which the checksum tells, or the highest one,
    /// which it may not.
    @Test(arguments: [0.02, 0.5, 0.98], [0, 3])
    func
        `one byte of the log of a killed daemon: the start is refused, the check finds it, a salvage gives all`(
            part: Double,
            byte: Int
        ) throws
    {
        let used = usedByteCount(try readFile(log))
        try #require(used > DamagedLogTests.count * DamagedLogTests.frameByteCount)
        try flip(Int(Double(used) * part) / 4 * 4 + byte)
        let before = try files()

        let start = try Program([stated, "--socket", daemon.socketPath, "--data", daemon.dataPath])
        #expect(try start.end() == 5)
        let database = daemon.dataPath + "/stated.db"
        #expect(start.errors.contains("\(database) is damaged: it ends at revision "))
        #expect(start.errors.contains("\(database)-mark records revision 500 as acknowledged"))
        #expect(start.errors.contains("`stated --salvage --data \(daemon.dataPath) --to "))
        #expect(try files() == before)

        let check = try runCommand(stated, ["--check", "--data", daemon.dataPath])
        #expect(check.exitCode == 5, "\(check)")
        #expect(check.text.contains("records revision 500 as acknowledged"), "\(check)")
        #expect(try files() == before)

        let target = daemon.directory.path(of: "new")
        let salvage = try runCommand(
            stated,
            ["--salvage", "--data", daemon.dataPath, "--to", target]
        )
        #expect(salvage.exitCode == 0, "\(salvage)")
        // Of a highest byte the rows on its page tell, unless it is in none of them.
        let line = salvage.lines.first ?? ""
        let isRepaired = line.hasPrefix("repaired: frame ")
        #expect(isRepaired || byte == 3 && line.hasPrefix("frame "), "\(salvage)")
        #expect(salvage.lines.last?.hasPrefix("rows 500, entries 500, ") == true, "\(salvage)")
        #expect(try files() == before)
        let socket = daemon.directory.path(of: "other")
        let next = try Program([stated, "--socket", socket, "--data", target])
        try next.waitForErrors(containing: " serves ")
        for number in [1, 250, DamagedLogTests.count] {
            let result = try Statectl.run(["--socket", socket, "get", "key/\(number)"])
            #expect(result.text == "\(number)\n")
        }
    }

    /// The log is made at its full length, of zeros.
    @Test func `a byte behind the end of the log changes nothing`() throws {
        let bytes = try readFile(log)
        let used = usedByteCount(bytes)
        try #require(bytes.count > used + DamagedLogTests.frameByteCount)
        try flip(used + 12)
        try flip(bytes.count - 1)
        try daemon.start()
        let client = try daemon.connect()
        #expect(try client.status().first { $0.name == "revision" }?.number == 500)
        #expect(try client.value(for: "key/500") == Array("500".utf8))
        #expect(!daemon.log.contains("a new epoch"))
    }
}
