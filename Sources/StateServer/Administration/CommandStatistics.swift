import CLinux
import StateEngine
import StateWire

/// How often commands ran, and how long they took.
///
/// Every call is counted. The clock is read for calls that may take long, and for one of 16 of the
/// others: reading it twice for each GET of a pipeline would cost 3 % of its time. So the times of
/// cheap commands are estimates, and a cheap command that took long is likely to be missed.
///
/// Used only by the loop thread.
final class CommandStatistics {
    /// The counts of one verb.
    struct Counts {
        var calls = 0
        var rejected = 0
        var failed = 0
        /// Measured calls, and their time in nanoseconds.
        var measured = 0
        var nanoseconds: Int64 = 0
        /// Measured calls by the number of bits of their time in microseconds.
        var durations: [Int] = []

        /// The time of all calls in microseconds, as far as it is known.
        var microseconds: Double {
            guard measured > 0 else { return 0 }
            return Double(nanoseconds) / 1_000 * Double(calls) / Double(measured)
        }
    }

    /// A command that took long.
    struct SlowCommand {
        let number: Int64
        /// Seconds since 1970.
        let time: Int64
        let microseconds: Int64
        let arguments: [[UInt8]]
        let address: String
        let client: [UInt8]
    }

    /// Commands from this time on are slow, in nanoseconds.
    static let slowNanoseconds: Int64 = 10_000_000
    /// How many of them are kept.
    static let slowCount = 128
    static let sampledEvery = 16
    static let durationCount = 32

    var counts = [Counts](repeating: Counts(), count: Verb.all.count)
    private(set) var slow: [SlowCommand] = []
    private var slowTotal: Int64 = 0
    /// The newest slow ones, for LATENCY: seconds since 1970 and milliseconds.
    private(set) var events: [(time: Int64, milliseconds: Int64)] = []
    private(set) var longest: Int64 = 0
    var untilSample = 0
    /// Errors by their code.
    private(set) var errors: [String: Int] = [:]
    private(set) var resetAt: Int64 = 0

    /// A measured call is over.
    @inline(never)
    func end(
        _ verb: Verb,
        since start: Int64,
        _ arguments: Arguments,
        _ connection: Connection,
        at time: Int64
    ) {
        let used = clinux_monotonic_nanoseconds() - start
        let place = verb.index
        counts[place].measured += 1
        counts[place].nanoseconds += used
        if counts[place].durations.isEmpty {
            counts[place].durations = Array(repeating: 0, count: CommandStatistics.durationCount)
        }
        let bits = 64 - UInt64(max(0, used / 1_000)).leadingZeroBitCount
        counts[place].durations[min(bits, CommandStatistics.durationCount - 1)] += 1
        if used >= CommandStatistics.slowNanoseconds { keep(used, arguments, connection, time) }
    }

    private func keep(
        _ used: Int64,
        _ arguments: Arguments,
        _ connection: Connection,
        _ time: Int64
    ) {
        let command = SlowCommand(
            number: slowTotal,
            time: time / 1_000,
            microseconds: used / 1_000,
            arguments: CommandStatistics.shortened(arguments),
            address: connection.address,
            client: connection.session.client.name
        )
        slowTotal += 1
        slow.insert(command, at: 0)
        if slow.count > CommandStatistics.slowCount { slow.removeLast() }
        let milliseconds = used / 1_000_000
        events.append((time / 1_000, milliseconds))
        if events.count > 160 { events.removeFirst() }
        longest = max(longest, milliseconds)
    }

    /// At most 32 arguments of at most 128 bytes, as in Redis.
    private static func shortened(_ arguments: Arguments) -> [[UInt8]] {
        let count = min(arguments.count, 32)
        return (0..<count).map { index in
            if index == 31, arguments.count > 32 {
                return Array("... (\(arguments.count - 31) more arguments)".utf8)
            }
            let argument = arguments[index]
            guard argument.count > 128 else { return Array(argument) }
            return Array(argument.prefix(128))
                + Array("... (\(argument.count - 128) more bytes)".utf8)
        }
    }

    /// A command was refused, before or while it ran.
    @inline(never)
    func noteError(_ error: StateError, of verb: Verb?, ran: Bool) {
        if let verb {
            if ran { counts[verb.index].failed += 1 } else { counts[verb.index].rejected += 1 }
        }
        let code = error.code.description
        if errors[code] != nil || errors.count < 128 { errors[code, default: 0] += 1 }
    }

    func reset(at time: Int64) {
        counts = Array(repeating: Counts(), count: Verb.all.count)
        errors = [:]
        resetAt = time
    }

    func resetDurations(of verbs: [Verb]) {
        for verb in verbs { counts[verb.index].durations = [] }
    }

    func resetSlow() { slow = [] }

    func resetEvents() { (events, longest) = ([], 0) }
}
