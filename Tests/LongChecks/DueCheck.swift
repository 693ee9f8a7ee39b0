import Glibc
import StateSystem
import StateTestSupport
import StateWire
import Synchronization

/// Many keys that are due within one second.
///
/// Checked: none is read after its deadline; all are told as commits within 1.5 s of it; the p99 of GETs of others
/// between the first deadline and the last commit is at most twice that before and after. One round after the other on
/// the same daemon; the median of the rounds counts.
struct DueCheck {
    private let keyCount: Int
    private let roundCount: Int
    private let clientCount: Int
    /// GETs a second of all clients; 0: as many as are answered.
    private let rate: Int
    /// Milliseconds from a deadline to the arrival of its commit; 0: only printed.
    private let toldLimit: Int
    /// In hundredths; 0: only printed.
    private let ratioLimit: Int
    private let directory: TemporaryDirectory
    private static let second: Int64 = 1_000_000_000
    private static let plainKeys = (0..<1_000).map { "plain/\($0)" }

    init(_ options: Options) throws {
        keyCount = try options.number("keys", standard: 100_000)
        roundCount = try options.number("rounds", standard: 7)
        clientCount = try options.number("clients", standard: 10)
        rate = try options.number("rate", standard: 0)
        toldLimit = try options.number("told", standard: 1_500)
        ratioLimit = try options.number("ratio", standard: 200)
        directory = try options.makeDirectory()
    }

    func run() throws {
        let daemon = try Daemon(directory: directory)
        let wire = try Wire(daemon.socketPath)
        try wire.pipeline(DueCheck.plainKeys.count) {
            Wire.command(["SET", DueCheck.plainKeys[$0], "value"])
        }
        print(
            "daemon \(daemon.pid), \(keyCount) keys due within a second, \(clientCount) clients that GET"
        )
        var figures: [Round] = []
        for number in 0..<roundCount {
            let round = try round(number, daemon)
            print("round \(number + 1): \(round)")
            try round.check(toldLimit)
            figures.append(round)
        }
        try daemon.stop()
        let ratio = median(figures.map(\.ratio))
        print(
            "due: \(keyCount) keys, \(roundCount) rounds; GET p99 \(median(figures.map(\.baseline)).text(0)) us without, "
                + "\(median(figures.map(\.beside)).text(0)) us beside, ratio \(ratio.text(2)) (medians); "
                + "told at most \(figures.map(\.longestMilliseconds).max() ?? 0) ms late; "
                + "\(figures.map(\.readCount).reduce(0, +)) reads near a deadline, none late"
        )
        guard ratioLimit == 0 || ratio * 100 <= Double(ratioLimit) else {
            throw Failure(
                "the p99 is more than \((Double(ratioLimit) / 100).text(2)) times as long"
            )
        }
    }

    /// One round; on a machine that is busy with other things it takes longer to set the keys.
    private func round(_ number: Int, _ daemon: Daemon) throws -> Round {
        for factor: Int64 in [1, 2, 4, 8] {
            let round = try Round(number, keyCount, (clientCount, rate), daemon.socketPath, factor)
            if let round { return round }
        }
        throw Failure("the machine is too slow: setting \(keyCount) keys took too long")
    }

    /// One round, and what it has measured.
    struct Round: CustomStringConvertible {
        /// Microseconds: the p99 without and beside keys that become due.
        private(set) var baseline = 0.0
        private(set) var beside = 0.0
        /// The longest time from a deadline to the arrival of its commit.
        private(set) var longestMilliseconds: Int64 = 0
        private(set) var commitCount = 0
        private(set) var readCount = 0
        private var lateCount = 0
        private var toldCount = 0
        private var rates = (without: 0, beside: 0)
        private let keyCount: Int

        var ratio: Double { beside / max(1, baseline) }

        var description: String {
            "GET p99 \(baseline.text(0)) us without (\(rates.without) a second), \(beside.text(0)) us beside "
                + "(\(rates.beside) a second), ratio \(ratio.text(2)); \(toldCount) keys told in \(commitCount) commits, "
                + "at most \(longestMilliseconds) ms late; \(lateCount) of \(readCount) reads late"
        }

        /// Nil if the keys were not set early enough before they were due.
        init?(
            _ number: Int,
            _ keyCount: Int,
            _ load: (clientCount: Int, rate: Int),
            _ socket: String,
            _ factor: Int64
        ) throws {
            self.keyCount = keyCount
            var random = SplitMix(seed: UInt64(number))
            let second = DueCheck.second
            let lead = factor * (3 * second + Int64(keyCount) * 30_000)
            let due = (wallNanoseconds() + lead) / second * second
            // Milliseconds since 1970, sorted, so that the number of a key says when it is due.
            let deadlines = (0..<keyCount)
                .map { _ in due / 1_000_000 + Int64.random(in: 0..<1_000, using: &random) }.sorted()
            try Wire(socket).pipeline(keyCount) {
                Wire.command(["SET", "due/\(number)/\($0)", "v", "PXAT", "\(deadlines[$0])"])
            }
            guard wallNanoseconds() < due - 2 * second else { return nil }
            let watch = try WatchLog("due/\(number)/", socket)
            let readers = try DueReaders("due/\(number)/", deadlines, socket)
            let clients = try GetLoad(
                clients: load.clientCount,
                rate: load.rate,
                keys: DueCheck.plainKeys,
                socket
            )
            DueCheck.sleepOver(due + 4 * second)
            let samples = try clients.end()
            (readCount, lateCount) = try readers.end()
            let told = try watch.end()
            commitCount = told.count
            var last = due + second
            for (keys, time) in told {
                for key in keys {
                    let deadline = deadlines[key] * 1_000_000
                    longestMilliseconds = max(longestMilliseconds, (time - deadline) / 1_000_000)
                    toldCount += 1
                }
                last = max(last, time)
            }
            func p99(_ ranges: Range<Int64>...) -> (Double, perSecond: Int) {
                let inside = samples.filter { sample in
                    ranges.contains { $0.contains(sample.start) }
                }
                let length = ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
                let rate = Int64(inside.count) * second / max(1, length)
                return (Double(percentile(inside.map(\.nanoseconds), 0.99)) / 1_000, Int(rate))
            }
            let half = second / 2
            (baseline, rates.without) = p99(
                due - 3 * half..<due - half,
                due + 5 * half..<due + 7 * half
            )
            (beside, rates.beside) = p99(due..<last)
        }

        func check(_ toldLimit: Int) throws {
            guard toldCount == keyCount else {
                throw Failure("\(toldCount) of \(keyCount) were told")
            }
            guard lateCount == 0 else {
                throw Failure("\(lateCount) reads of a value after its deadline")
            }
            guard toldLimit == 0 || longestMilliseconds <= toldLimit else {
                throw Failure("told more than \(toldLimit) ms late")
            }
        }
    }

    private static func sleepOver(_ time: Int64) { sleep(until: time) }
}

/// A watch whose pushes are only kept until the end, with the times at which they arrived.
final class WatchLog: @unchecked Sendable {
    private let wire: Wire
    private let prefix: String
    private let isEnding = Atomic(false)
    private let thread = WorkerThread(name: "watch")
    private var chunks: [(end: Int, time: Int64)] = []
    private var failure: (any Error)?

    init(_ prefix: String, _ socket: String) throws {
        self.prefix = prefix
        wire = try Wire(socket)
        try wire.ask("HELLO", "3")
        try wire.ask("STATE.WATCH", prefix)
        thread.start { [self] in
            do {
                while !isEnding.load(ordering: .relaxed) {
                    guard wire.waits(milliseconds: 50) else { continue }
                    try wire.receive()
                    chunks.append((wire.received.count, wallNanoseconds()))
                }
            } catch { failure = error }
        }
    }

    /// The keys of each commit, by the number after the prefix, and when it arrived.
    func end() throws -> [(keys: [Int], time: Int64)] {
        isEnding.store(true, ordering: .relaxed)
        thread.join()
        if let failure { throw failure }
        var parser = ReplyParser()
        var commits: [(keys: [Int], time: Int64)] = []
        var start = 0
        for (end, time) in chunks {
            wire.received[start..<end].withUnsafeBytes { parser.append($0) }
            start = end
            while let push = try parser.next() {
                guard case .push(let parts) = push, parts.first?.textValue == "state.change" else {
                    continue
                }
                let keys = (parts[3].elements ?? []).compactMap { change -> Int? in
                    guard let key = change.elements?[0].textValue else { return nil }
                    return Int(key.dropFirst(prefix.count))
                }
                commits.append((keys, time))
            }
        }
        return commits
    }
}

/// Asks for keys around their deadlines, one each half millisecond.
final class DueReaders: @unchecked Sendable {
    private let isEnding = Atomic(false)
    private let thread = WorkerThread(name: "readers")
    private let wire: Wire
    private var counts = (read: 0, late: 0)
    private var failure: (any Error)?

    init(_ prefix: String, _ deadlines: [Int64], _ socket: String) throws {
        wire = try Wire(socket)
        thread.start { [self] in
            do {
                var place = 0
                while !isEnding.load(ordering: .relaxed), place < deadlines.count {
                    // The first that is due in two milliseconds or later, and then some that already are.
                    let now = wallNanoseconds()
                    while place < deadlines.count, deadlines[place] * 1_000_000 < now { place += 1 }
                    let offset = counts.read % 4 == 0 ? 20 : -(counts.read % 4) * 40
                    let index = min(max(place + offset, 0), deadlines.count - 1)
                    if abs(deadlines[index] * 1_000_000 - now) < 20_000_000 {
                        try ask(prefix + "\(index)", deadlines[index] * 1_000_000)
                    }
                    usleep(500)
                }
            } catch { failure = error }
        }
    }

    /// Both clocks of the daemon count milliseconds, so a deadline may be one of them late.
    private func ask(_ key: String, _ deadline: Int64) throws {
        let start = wallNanoseconds()
        try wire.send(Wire.command(["GET", key]))
        repeat { try wire.receive() } while !wire.hasWholeValue
        counts.read += 1
        if !wire.isNull, start >= deadline + 1_000_000 { counts.late += 1 }
        wire.forgetReceived()
    }

    func end() throws -> (read: Int, late: Int) {
        isEnding.store(true, ordering: .relaxed)
        thread.join()
        if let failure { throw failure }
        return counts
    }
}
