import StateTestSupport
import StateWire
import Testing

/// Deadlines while the wall clock is set, and over a SIGKILL meanwhile; `scripts/endure clock` is the long form.
struct ExpiryClockTests {
    private let directory: TemporaryDirectory
    private let clock: MovedClock
    private static let day = 86_400

    init() throws {
        directory = try TemporaryDirectory()
        clock = try MovedClock(in: directory)
    }

    private func left(_ peer: Peer, _ key: String) throws -> Int64 {
        try peer.ask("PTTL \(key)").integerValue ?? -3
    }

    /// `STATED_CLOCK_ROUNDS` rounds.
    @Test func `steps of the wall clock move no deadline of a running daemon, and count at rest`()
        throws
    {
        let daemon = try Daemon(directory: directory, environment: clock.environment)
        let rounds = Extent.named("STATED_CLOCK_ROUNDS", short: 1)
        for round in 0..<rounds {
            for step in [-ExpiryClockTests.day, MovedClock.tenYears] {
                try move(daemon, by: step, in: "\(round)/\(step < 0 ? "back" : "on")")
            }
        }
        print("clock: \(rounds) rounds of a day back and ten years on, running and over SIGKILL")
    }

    private func move(_ daemon: Daemon, by step: Int, in folder: String) throws {
        let hour: Int64 = 3_600_000
        let (long, soon) = ("\(folder)/long", "\(folder)/soon")
        let (short, ever) = ("\(folder)/short", "\(folder)/ever")
        var peer = try Peer(daemon.socketPath)
        _ = try peer.ask("SET \(long) v PX \(hour)")
        _ = try peer.ask("SET \(ever) v")
        _ = try peer.ask("SET \(soon) v PX 300")
        let before = try peer.ask("PEXPIRETIME \(long)")
        try clock.move(by: step)
        // The time that is left runs on, as if nothing had happened.
        #expect((hour - 300_000...hour).contains(try left(peer, long)), "\(folder)")
        #expect(try peer.ask("PEXPIRETIME \(long)") == before)
        #expect(try eventually { try peer.ask("EXISTS \(soon)") == .integer(0) })
        _ = try peer.ask("SET \(short) v PX 300")
        #expect(try eventually { try peer.ask("EXISTS \(short)") == .integer(0) })
        // What is set now has the time of now.
        let shifted = "\(folder)/shifted"
        _ = try peer.ask("SET \(shifted) v PX \(hour)")
        let times = try (
            peer.ask("PEXPIRETIME \(shifted)").integerValue, before.integerValue
        )
        let difference = try #require(times.0) - #require(times.1)
        #expect(abs(difference - Int64(step) * 1_000) < 300_000, "\(folder)")

        // At rest the wall time counts.
        daemon.kill()
        try daemon.start()
        peer = try Peer(daemon.socketPath)
        #expect(try peer.ask("GET \(ever)").textValue == "v")
        #expect((hour - 300_000...hour).contains(try left(peer, shifted)), "\(folder)")
        if step < 0 {
            let later = hour + Int64(-step) * 1_000
            #expect((later - 300_000...later).contains(try left(peer, long)), "\(folder)")
        } else {
            #expect(try peer.ask("GET \(long)") == .null)
        }
        // And back, over a kill: what has its time from the other clock is as far away as the clocks are.
        try clock.move(by: 0)
        daemon.kill()
        try daemon.start()
        peer = try Peer(daemon.socketPath)
        let isLeft = try peer.ask("EXISTS \(shifted)") == .integer(1)
        #expect(isLeft == (step > 0), "\(folder)")
        #expect(try peer.ask("EXISTS \(long)") == .integer(step < 0 ? 1 : 0), "\(folder)")
        #expect(try peer.ask("GET \(ever)").textValue == "v")
        _ = try peer.ask("DEL \(ever) \(long) \(shifted)")
    }
}
