import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A disk that fills up, on a file system of 32 MiB of its own.
///
/// `STATED_DISK_ROUNDS=10 scripts/test --filter FullDiskTests` does it as often as the promise says; twice without. Where
/// nothing may be mounted (it takes root), it is not run.
@Suite(.enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"))
struct FullDiskTests {
    private static let rounds =
        getenv("STATED_DISK_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 2

    @Test(arguments: 1...rounds)
    func `a full disk refuses writes, loses nothing, and heals without a restart`(
        round: Int
    ) throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "data"))
        try directory.write(Array(repeating: 7, count: 8 << 20), to: "data/ballast")
        let daemon = try Daemon(directory: directory)
        let client = try daemon.connect()
        let inMemory = try Daemon("--memory", directory: TemporaryDirectory(in: disk.path))
        var kept = Kept(seed: UInt64(round))
        var keptInMemory = Kept(seed: UInt64(round) + 1_000)

        let error = try kept.fill(client)
        #expect(error.code == .noSpace, "\(error)")
        #expect(error.message.contains(daemon.dataPath))
        #expect(kept.count > 100)
        #expect(try kept.faults(client) == [])
        #expect(try kept.fill(client).code == .noSpace)
        let memoryClient = try inMemory.connect()
        for _ in 0..<200 { #expect(try keptInMemory.write(memoryClient) == nil) }
        #expect(try keptInMemory.faults(memoryClient) == [])

        unlink(directory.path(of: "data/ballast"))
        #expect(try eventually { try kept.write(client) == nil })
        for _ in 0..<200 { #expect(try kept.write(client) == nil) }
        #expect(try kept.faults(client) == [])

        daemon.kill()
        try daemon.start()
        #expect(try kept.faults(daemon.connect()) == [])
        try daemon.stop()
        try inMemory.stop()
        withExtendedLifetime(disk) {}
    }

    @Test func `a full disk of files refuses writes to them by its name, and no others`() throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "d"))
        try directory.write(
            "{ rules: [{ keys: 'app/', backing: 'file', directory: '\(disk.path)' }] }",
            to: "c.json5"
        )
        let daemon = try Daemon(["--config", directory.path(of: "c.json5")], directory: directory)
        let client = try daemon.connect()
        try client.set([1], for: "app/old")
        _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "d/.ballast")
        let value = [UInt8](repeating: 1, count: 64 << 10)
        let refusal = #expect(throws: StateError.self) { try client.set(value, for: "app/secret") }
        #expect(refusal?.code == .noSpace)
        #expect(refusal?.message.contains("the directory \(disk.path) cannot be written") ?? false)
        #expect(refusal?.message.contains("secret") == false)
        try client.set(value, for: "other")
        #expect(try client.delete(["app/old"]).count == 1)
        unlink(directory.path(of: "d/.ballast"))
        let isWritten = eventually(within: .seconds(30)) {
            (try? client.set(value, for: "app/secret")) != nil
        }
        #expect(isWritten)
        #expect(try readFile(directory.path(of: "d/secret")) == value)
        try daemon.stop()
        withExtendedLifetime(disk) {}
    }

    @Test(arguments: ["compact", "restart"])
    func `never silent about storage: a disk filled by the history heals by what it gives up`(
        way: String
    ) throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "data"))
        func configure(_ history: String) throws {
            try directory.write(
                "{ history: { \(history) }, limits: { reserveBytes: '4MiB' } }",
                to: "c.json5"
            )
        }
        try configure("bytes: '1GiB'")
        let daemon = try Daemon(["--config", directory.path(of: "c.json5")], directory: directory)
        var client = try daemon.connect()
        var kept = Kept(seed: 7)
        #expect(try kept.fill(client).code == .noSpace)
        #expect(try kept.fill(client).message.contains("statectl compact --to"))
        let status = try Statectl.run(daemon, "status")
        #expect(status.exitCode == 5)
        #expect(status.text.contains(" refused: disk full: "))
        #expect(status.text.contains("until there is room, deletes are not"))
        // Somebody else takes what the reserve left.
        _ = try? directory.write([UInt8](repeating: 7, count: 8 << 20), to: "data/ballast")
        for number in 0..<150 { try kept.delete("disk/\(number)", client) }
        #expect(try kept.faults(client) == [])
        if way == "compact" {
            let field = try client.status().first { $0.name == "revision" }
            let revision = try #require(field?.number)
            let compaction = try Statectl.run(daemon, "compact", "--to", "\(revision)")
            #expect(compaction.exitCode == 0, "\(compaction)")
        } else {
            daemon.kill()
            try configure("changes: 10")
            try daemon.start()
            client = try daemon.connect()
        }
        #expect(try eventually(within: .seconds(30)) { try kept.write(client) == nil })
        for _ in 0..<200 { try #require(try kept.write(client) == nil) }
        #expect(try Statectl.run(daemon, "status").text.contains("storage:               ok\n"))
        #expect(try kept.faults(client) == [])
        daemon.kill()
        try daemon.start()
        #expect(try kept.faults(daemon.connect()) == [])
        // The first life may have ended without room, and the start makes some before it is missed.
        let lines = daemon.log.split(separator: "\n")
        let fullCount = lines.count { $0.contains("until there is room, deletes are not") }
        let roomCount = lines.count { $0.contains("the disk has room again: writes are accepted") }
        let least = fullCount - (way == "restart" ? 1 : 0)
        #expect(fullCount > 0 && (least...fullCount).contains(roomCount), "\(daemon.log)")
        try daemon.stop()
        withExtendedLifetime(disk) {}
    }

    @Test func `never silent about storage: what others take of the disk leaves room for deletes`()
        throws
    {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "data"))
        try directory.write("{ limits: { reserveBytes: '6MiB' } }", to: "c.json5")
        let daemon = try Daemon(["--config", directory.path(of: "c.json5")], directory: directory)
        let client = try daemon.connect()
        var kept = Kept(seed: 8)
        for _ in 0..<50 { #expect(try kept.write(client) == nil) }
        _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "data/ballast")
        #expect(try kept.fill(client).code == .noSpace)
        for number in 0..<300 { try kept.delete("disk/\(number)", client) }
        #expect(try client.count(of: "disk/") == 0)
        unlink(directory.path(of: "data/ballast"))
        #expect(try eventually(within: .seconds(30)) { try kept.write(client) == nil })
        #expect(try kept.faults(client) == [])
        try daemon.stop()
        withExtendedLifetime(disk) {}
    }

    @Test func `a daemon with keys in memory starts on a full disk`() throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "data"))
        try directory.write("{ rules: [{ keys: 'm/', backing: 'memory' }] }", to: "c.json5")
        let daemon = try Daemon(["--config", directory.path(of: "c.json5")], directory: directory)
        try daemon.connect().set([1], for: "stored")
        try daemon.connect().set([1], for: "m/a")
        for _ in 0..<3 {
            daemon.kill()
            _ = try? directory.write([UInt8](repeating: 7, count: 40 << 20), to: "data/ballast")
            try daemon.start()
            let client = try daemon.connect()
            #expect(try client.value(for: "stored") == [1])
            #expect(try client.value(for: "m/a") == nil)
            // A watch that goes on from before the start has to be told that they are gone.
            try client.set([2], for: "m/a")
            #expect(try client.value(for: "m/a") == [2])
        }
        #expect(daemon.log.contains("the list of key patterns in memory cannot be updated"))
        try daemon.stop()
        withExtendedLifetime(disk) {}
    }
}

/// What was acknowledged, and what writes it.
private struct Kept {
    private var values: [Key: [UInt8]] = [:]
    private var random: SplitMix

    var count: Int { values.count }

    init(seed: UInt64) { random = SplitMix(seed: seed) }

    /// Writes one value.
    ///
    /// - Returns: Why it was refused; nil where it was not.
    mutating func write(_ client: Client) throws -> StateError? {
        let key = try Key("disk/\(Int.random(in: 0..<300, using: &random))")
        let value = random.bytes(Int.random(in: 1...8_192, using: &random))
        do throws(StateError) {
            _ = try client.set(value, for: key)
        } catch {
            return error
        }
        values[key] = value
        return nil
    }

    mutating func delete(_ key: String, _ client: Client) throws {
        let key = try Key(key)
        _ = try client.delete([Pattern(key)])
        values[key] = nil
    }

    /// Writes until it is refused, and says why.
    mutating func fill(_ client: Client) throws -> StateError {
        while true {
            if let error = try write(client) { return error }
        }
    }

    /// The keys whose values are not those that were acknowledged.
    func faults(_ client: Client) throws -> [Key] {
        try values.filter { try client.value(for: $0.key) != $0.value }.map(\.key)
    }
}
