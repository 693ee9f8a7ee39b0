import Glibc
import StateEngine

/// Writes a value at each tick of a fixed rate, on its own thread.
///
/// The rate does not depend on the server: no write waits for the answer to the one before, and
/// missed ticks are made up for. The time in a value is when it was passed to the kernel.
final class DeliveryWriter: Sendable {
    /// The results.
    struct Report {
        var perSecond = 0.0
        var error: BenchError?
    }

    private let route: DeliveryRoute
    private let valueByteCount: Int
    private let rate: Int
    private let thread = WorkerThread(name: "writer")
    private let report = StateLock(Report())

    init(_ route: DeliveryRoute, valueByteCount: Int, rate: Int) throws(BenchError) {
        self.route = route
        self.valueByteCount = valueByteCount
        self.rate = rate
    }

    func start(count: Int) {
        thread.start { [self] in
            do throws(BenchError) {
                try write(count)
            } catch {
                report.withLock { $0.error = error }
            }
        }
    }

    /// Waits for the end.
    func finish() -> Report {
        thread.join()
        return report.withLock { $0 }
    }

    private func write(_ count: Int) throws(BenchError) {
        var connections: [Connection] = []
        for _ in 0..<route.writerCount {
            let connection = try route.connect()
            try connection.becomeNonBlocking()
            connections.append(connection)
        }
        var request = route.makeRequest(valueByteCount: valueByteCount)
        var answersLeft = count
        let start = MonotonicClock.now
        for number in 0..<count {
            let connection = connections[number % connections.count]
            MonotonicClock.sleep(until: start + UInt64(number) * 1_000_000_000 / UInt64(rate))
            request.append(to: &connection.output, at: MonotonicClock.now)
            guard try connection.flush(), connection.output.isEmpty else {
                throw .failed("the server does not accept more writes")
            }
            answersLeft -= try takeAnswers(connection)
        }
        let elapsed = Double(MonotonicClock.now - start) / 1e9
        report.withLock { $0.perSecond = Double(count) / elapsed }
        try awaitAnswers(connections, answersLeft)
    }

    private func takeAnswers(_ connection: Connection) throws(BenchError) -> Int {
        if case .cut = try connection.receive() { throw .failed("the connection was closed") }
        return try route.takeAnswers(connection)
    }

    /// Keeps connections open until the last writes are answered: closing them would discard the
    /// writes unread.
    private func awaitAnswers(_ connections: [Connection], _ count: Int) throws(BenchError) {
        let poller = try Poller()
        for (number, connection) in connections.enumerated() {
            try poller.add(connection.descriptor, number: number)
        }
        var answersLeft = count
        while answersLeft > 0 {
            let isReady = try poller.wait(milliseconds: 10_000) { (number, _) throws(BenchError) in
                answersLeft -= try takeAnswers(connections[number])
            }
            guard isReady else { throw .failed("no answer to \(answersLeft) writes in 10 s") }
        }
    }
}

/// The sending time in a value: nanoseconds of the monotonic clock in twenty digits, at its start.
enum DeliveryStamp {
    static let byteCount = 20

    static func write(_ time: UInt64, to bytes: inout [UInt8], at offset: Int) {
        var rest = time
        for index in (0..<byteCount).reversed() {
            bytes[offset + index] = UInt8(48 + rest % 10)
            rest /= 10
        }
    }

    static func read(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.prefix(byteCount).reduce(0) { $0 * 10 + UInt64($1 & 15) }
    }
}

/// A write whose stamp is replaced each time.
struct DeliveryRequest {
    private var bytes: [UInt8]
    private let offset: Int
    /// Whether the value is in base64.
    private let isEncoded: Bool

    /// The value starts at `offset` of `bytes`.
    init(_ bytes: [UInt8], offset: Int, isEncoded: Bool) {
        self.bytes = bytes
        self.offset = offset
        self.isEncoded = isEncoded
    }

    mutating func append(to queue: inout ByteQueue, at time: UInt64) {
        if isEncoded {
            var stamp = Array(repeating: UInt8(ascii: "v"), count: DeliveryStamp.byteCount + 1)
            DeliveryStamp.write(time, to: &stamp, at: 0)
            let encoded = Base64.encode(stamp)
            bytes.replaceSubrange(offset..<(offset + encoded.count), with: encoded)
        } else {
            DeliveryStamp.write(time, to: &bytes, at: offset)
        }
        bytes.withUnsafeBytes { queue.append($0) }
    }
}
