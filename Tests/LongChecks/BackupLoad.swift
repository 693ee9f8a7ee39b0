import Glibc
import StateSystem
import StateTestSupport
import StateWire
import Synchronization

/// What is stored before the load: keys of up to three users, every fifth with a deadline.
struct BackupFill {
    let keyCount: Int

    /// The keys that are changed one by one.
    ///
    /// Those before and after them are pairs, the first with the last one, with the same value at
    /// each revision.
    static func singles(of count: Int) -> Range<Int> { count / 3..<count - count / 3 }

    static func expires(_ number: Int) -> Bool { number % 5 == 2 }

    /// Stores them, and some that are deleted again.
    func fill(_ socket: String) throws {
        let users = TestUser.areThere ? TestUser.names.compactMap { TestUser($0) } : []
        if users.isEmpty { print("only root can act as other users: all keys have one owner") }
        let wires =
            try [Wire(socket)]
            + users.map { try Wire(connected: $0.connectedDescriptor(to: socket)) }
        let deadline = wallNanoseconds() / 1_000_000 + 86_400_000
        for (part, wire) in wires.enumerated() {
            // Of ten keys, each of the other users has one.
            let numbers = (0..<keyCount).filter { min($0 % 10, wires.count) % wires.count == part }
            try wire.pipeline(numbers.count) { place in
                let number = numbers[place]
                let value = "value \(min(number, keyCount - 1 - number)), and so on"
                let expiry =
                    BackupFill.expires(number) ? ["PXAT", "\(deadline + Int64(number))"] : []
                return Wire.command(["SET", "k/\(number)", value] + expiry)
            }
        }
        let changed = BackupFill.singles(of: keyCount).filter { $0 % 10 == 0 }
        try wires[0].pipeline(changed.count) {
            Wire.command(["SET", "k/\(changed[$0])", "changed \($0)", "KEEPTTL"])
        }
        let gone = keyCount / 50
        try wires[0].pipeline(gone) { Wire.command(["SET", "gone/\($0)", "value"]) }
        try wires[0].pipeline(gone) { Wire.command(["DEL", "gone/\($0)"]) }
    }
}

/// Clients that write and read as fast as they are answered, each on a thread of its own.
final class BackupLoad {
    /// How long commands took, in microseconds.
    struct Figures: CustomStringConvertible {
        let without: Double
        let beside: Double
        /// Commands a second.
        let rates: (without: Int64, beside: Int64)

        var ratio: Double { beside / max(1, without) }

        var description: String {
            "p99 \(without.text(0)) us without (\(rates.without) a second), \(beside.text(0)) us beside "
                + "(\(rates.beside) a second), ratio \(ratio.text(2))"
        }
    }

    private let clients: [BackupClient]

    init(writers: Int, readers: Int, keyCount: Int, _ socket: String) throws {
        clients = try (0..<writers + readers).map {
            BackupClient($0, writes: $0 < writers, keyCount: keyCount, try Wire(socket))
        }
    }

    func figures(
        ofWriters areWriters: Bool,
        without: [Range<Int64>],
        beside: Range<Int64>
    ) -> Figures {
        let samples = clients.filter { $0.writes == areWriters }.flatMap { $0.samples() }
        func p99(_ ranges: [Range<Int64>]) -> (Double, Int64) {
            let inside = samples.filter { sample in ranges.contains { $0.contains(sample.start) } }
            let length = ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
            let rate = Int64(inside.count) * 1_000_000_000 / max(1, length)
            return (Double(percentile(inside.map(\.nanoseconds), 0.99)) / 1_000, rate)
        }
        let (before, during) = (p99(without), p99([beside]))
        return Figures(without: before.0, beside: during.0, rates: (before.1, during.1))
    }

    /// Ends it.
    ///
    /// - Throws: ``Failure`` if a command was refused.
    func end() throws {
        for client in clients { client.isEnding.store(true, ordering: .relaxed) }
        for client in clients { try client.join() }
    }
}

/// One of the clients.
private final class BackupClient: @unchecked Sendable {
    let writes: Bool
    let isEnding = Atomic(false)
    private let number: Int
    private let keyCount: Int
    private let wire: Wire
    private let thread = WorkerThread(name: "load")
    private let taken = StateLock<[GetLoad.Sample]>([])
    private var failure: (any Error)?
    private var random: SplitMix
    private var count = 0

    init(_ number: Int, writes: Bool, keyCount: Int, _ wire: Wire) {
        (self.number, self.writes, self.keyCount, self.wire) = (number, writes, keyCount, wire)
        random = SplitMix(seed: UInt64(number))
        thread.start { [self] in
            do {
                while !isEnding.load(ordering: .relaxed) { try ask(writes ? write() : read()) }
            } catch { failure = error }
        }
    }

    /// What it has measured since the last call.
    func samples() -> [GetLoad.Sample] {
        taken.withLock { samples in
            defer { samples.removeAll(keepingCapacity: true) }
            return samples
        }
    }

    func join() throws {
        thread.join()
        if let failure { throw failure }
    }

    private func ask(_ command: [UInt8]) throws {
        let start = wallNanoseconds()
        try wire.send(command)
        if case .error(let error) = try wire.next() { throw Failure("a client got: \(error)") }
        let sample = GetLoad.Sample(start: start, nanoseconds: wallNanoseconds() - start)
        taken.withLock { $0.append(sample) }
    }

    private func read() -> [UInt8] {
        Wire.command(["GET", "k/\(Int.random(in: 0..<keyCount, using: &random))"])
    }

    private func write() -> [UInt8] {
        count += 1
        let value = "written by \(self.number), \(count)"
        var number = Int.random(in: BackupFill.singles(of: keyCount), using: &random)
        // Deadlines of the beginning stay.
        if BackupFill.expires(number) { number -= 1 }
        let single = "k/\(number)"
        switch Int.random(in: 0..<20, using: &random) {
        case 0: return Wire.command(["SET", single, value, "PX", "\(86_400_000 + count)"])
        case 1:
            let name = "extra/\(self.number)/\(count / 40)"
            return Wire.command(count / 20 % 2 == 0 ? ["SET", name, value] : ["DEL", name])
        case 2..<6:
            let left = Int.random(in: 0..<keyCount / 3, using: &random)
            return Wire.command(["MSET", "k/\(left)", value, "k/\(keyCount - 1 - left)", value])
        default: return Wire.command(["SET", single, value])
        }
    }
}
