import Glibc
import StateClient
import StateEngine
import StateTestSupport
import StateWire
import Testing

/// A disk that stands still: a file system that is frozen while 50 clients write through pipelines.
///
/// `STATED_FREEZE_SECONDS=30 scripts/test --filter StalledDiskTests` holds it as long as the promise says, and also looks at how
/// long reads take; 2 s without. Where nothing may be mounted (it takes root and a loop device), it is not run.
@Suite(.enabled(if: FreezingDisk.isPossible, "only root may mount a file system"))
struct StalledDiskTests {
    private static let seconds = getenv("STATED_FREEZE_SECONDS").flatMap {
        Int(String(cString: $0))
    }

    private let directory: TemporaryDirectory
    private let disk: FreezingDisk
    private let daemon: Daemon

    init() throws {
        directory = try TemporaryDirectory()
        disk = try FreezingDisk(at: directory.path(of: "data"), in: directory)
        daemon = try Daemon(directory: directory)
    }

    @Test func `a stalled disk costs bounded memory, and reads go on`() throws {
        let reader = try daemon.connect()
        for number in 0..<100 { _ = try reader.set([1, 2, 3], for: try Key("free/\(number)")) }
        let memory = try daemon.residentMemory()
        try disk.freeze()
        // A daemon that waits for the disk cannot even be killed.
        defer { try? disk.thaw() }
        let writers = try startWriters()
        let times = try read(reader, for: .seconds(Self.seconds ?? 2))
        let growth = try daemon.residentMemory() - memory
        #expect(growth < 128, "the daemon's memory grew by \(growth) MiB")
        let uncommitted = try number("uncommitted", reader)
        // A sixteenth of the queue, which is what one user may have.
        #expect(uncommitted >= 4 << 20, "the writers never reached the limit: \(uncommitted)")
        #expect(uncommitted < 6 << 20)
        #expect(times.count > 100)
        if Self.seconds != nil {
            let slow = times.sorted()[times.count * 99 / 100]
            #expect(slow < .milliseconds(5), "the 99th percentile of GETs was \(slow)")
        }
        try disk.thaw()
        let result = try writers.finish(within: .seconds(120))
        #expect(result.exitCode == 0, "\(result)")
        #expect(numbers(in: result)["requests"] == 100_000)
        #expect(try number("uncommitted", reader) == 0)
        #expect(try reader.value(for: "free/7") == [1, 2, 3])
    }

    @Test func `bounded: reads go on while the log of what is stored later waits for the disk`()
        throws
    {
        let rule = "{ rules: [{ keys: 'late/', durability: 'interval' }] }"
        daemon.kill()
        let late = try Daemon(
            "--config",
            try directory.write(Array(rule.utf8), to: "late.json5"),
            directory: directory
        )
        let reader = try late.connect()
        _ = try reader.set([1, 2, 3], for: "free/0")
        _ = try reader.set([1], for: "late/a")
        let writer = try Peer(late.socketPath)
        try disk.freeze()
        defer { try? disk.thaw() }
        try writer.send("SET late/a 2")
        let clock = ContinuousClock()
        for _ in 0..<100 {
            let start = clock.now
            #expect(try reader.value(for: "free/0") == [1, 2, 3])
            #expect(clock.now - start < .seconds(1))
        }
        #expect(try late.connect().status().contains { $0.name == "unsettled_bytes" })
        // What cannot be kept is told to nobody.
        let second = try Peer(late.socketPath)
        try second.send("SET late/b 1")
        #expect(try reader.value(for: "free/0") == [1, 2, 3])
        #expect(!second.socket.isReadable(within: 200) && !writer.socket.isReadable(within: 0))
        try disk.thaw()
        #expect(try writer.next() == .simple("OK") && second.next() == .simple("OK"))
        #expect(try reader.value(for: "late/a") == [UInt8(ascii: "2")])
        late.kill()
    }

    /// 50 clients with 2,000 commands of 1,900 bytes under way each: 190 MB.
    ///
    /// Two such rows have room on a page.
    private func startWriters() throws -> RunningCommand {
        let arguments = [
            "load", "--socket", daemon.socketPath, "--op", "set", "--clients", "50",
            "--pipeline", "2000", "--requests", "100000", "--keys", "1000", "--value-bytes", "1900",
        ]
        return try RunningCommand(builtProgram("statebench"), arguments.map { Array($0.utf8) })
    }

    /// Reads keys that nobody writes, and says how long each took.
    private func read(_ client: Client, for time: Duration) throws -> [Duration] {
        let clock = ContinuousClock()
        let end = clock.now + time
        var times: [Duration] = []
        while clock.now < end {
            let start = clock.now
            let value = try client.value(for: try Key("free/\(times.count % 100)"))
            times.append(clock.now - start)
            #expect(value == [1, 2, 3])
            // Not as fast as it can: the writers are to have the processor, too.
            poll(nil, 0, 1)
        }
        return times
    }

    private func number(_ name: String, _ client: Client) throws -> Int64 {
        try #require(try client.status().first { $0.name == name }?.number)
    }
}

/// A file system in a file, as long as this object lives, that can be made to stand still.
private final class FreezingDisk {
    private let path: String
    private var isFrozen = false

    init(at path: String, in directory: TemporaryDirectory) throws {
        self.path = path
        let image = directory.path(of: "image")
        try FreezingDisk.run("truncate", "-s", "512M", image)
        try FreezingDisk.run("mkfs.ext4", "-q", image)
        guard mkdir(path, 0o700) == 0 else { throw SystemFailure(call: "mkdir", errno) }
        try FreezingDisk.run("mount", "-o", "loop", image, path)
    }

    deinit {
        try? thaw()
        umount2(path, Int32(MNT_DETACH))
    }

    func freeze() throws {
        try FreezingDisk.run("fsfreeze", "-f", path)
        isFrozen = true
    }

    func thaw() throws {
        guard isFrozen else { return }
        isFrozen = false
        try FreezingDisk.run("fsfreeze", "-u", path)
    }

    private static func run(_ program: String, _ arguments: String...) throws {
        let result = try runCommand(program, arguments)
        guard result.exitCode == 0 else { throw SystemFailure("\(program): \(result)") }
    }

    /// Whether this process may mount one.
    static let isPossible: Bool = {
        guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
        return (try? FreezingDisk(at: directory.path(of: "try"), in: directory)) != nil
    }()
}
