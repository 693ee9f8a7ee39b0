import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// A watcher that stops reading: what it costs, and what it is told when it reads again.
///
/// `STATED_STALL_MIB=1024 scripts/test --filter WatchStallTests` writes as much as the promise says, and compares how fast; 128 MiB
/// without, and no times, for the tests beside it take the processor as they like.
struct WatchStallTests {
    private static let valueByteCount = 4_096
    private static let keyCount = 1_000
    private static let sliceCount = 16

    private let byteCount: Int
    private let comparesSpeed: Bool
    private let daemon: Daemon
    /// The same work without the watcher: a machine's speed drifts, so both are measured by turns.
    private let other: Daemon

    init() throws {
        let mebibytes = getenv("STATED_STALL_MIB").flatMap { Int(String(cString: $0)) }
        byteCount = (mebibytes ?? 128) << 20
        comparesSpeed = mebibytes != nil
        daemon = try Daemon()
        other = try Daemon()
    }

    @Test func `a watcher that stops reading costs bounded memory and slows nobody`() throws {
        for daemon in [daemon, other] { _ = try write(to: daemon, byteCount: 16 << 20) }
        let memory = try daemon.residentMemory()
        let client = try daemon.connect(timeout: .seconds(60))
        _ = try client.watch([.everything], snapshot: true)
        var state = WatchedState()
        while !state.isSynced {
            state.apply(try #require(try client.nextEvent(timeout: .seconds(20))))
        }

        // Past every buffer, before anything is measured.
        for daemon in [daemon, other] { _ = try write(to: daemon, byteCount: 32 << 20) }
        // The best of many slices is what is left when the machine had other things to do in the others; where
        // it had in all of them, more tell a daemon that is slow from a machine that is.
        var (stalled, free, slice) = (0.0, 0.0, 0)
        while slice < Self.sliceCount || stalled < free * 0.8 && slice < 4 * Self.sliceCount {
            stalled = max(stalled, try write(to: daemon, byteCount: byteCount / Self.sliceCount))
            slice += 1
            guard comparesSpeed else { continue }
            free = max(free, try write(to: other, byteCount: byteCount / Self.sliceCount))
        }
        let growth = try daemon.residentMemory() - memory
        #expect(growth < 64, "the daemon's memory grew by \(growth) MiB")
        #expect(stalled >= free * 0.8, "\(stalled) writes a second, \(free) without the watcher")

        try expectEveryCommitThenLive(client, &state)
    }

    /// What the watcher reads now begins with what was buffered, and goes on with what it missed: no gap, and each commit.
    private func expectEveryCommitThenLive(_ client: Client, _ state: inout WatchedState) throws {
        let writer = try daemon.connect()
        let last = try writer.set(Array("live".utf8), for: "live").revision
        while !state.isSynced || state.revision < last {
            state.apply(try #require(try client.nextEvent(timeout: .seconds(60))))
        }
        #expect(state.gapCount == 0)
        #expect(try state.entries == WatchedState.listed(by: writer))
        let next = try writer.set(Array("again".utf8), for: "live").revision
        let event = try #require(try client.nextEvent(timeout: .seconds(20)))
        guard case .commit(_, next, _) = event else {
            Issue.record("not the commit \(next) but \(event)")
            return
        }
    }

    /// Writes a second.
    private func write(to daemon: Daemon, byteCount: Int) throws -> Double {
        let result = try statebench(
            "load",
            "--socket",
            daemon.socketPath,
            "--op",
            "set",
            "--clients",
            "8",
            "--pipeline",
            "16",
            "--keys",
            "\(Self.keyCount)",
            "--value-bytes",
            "\(Self.valueByteCount)",
            "--requests",
            "\(byteCount / Self.valueByteCount)"
        )
        return try #require(result["per_second"])
    }
}
