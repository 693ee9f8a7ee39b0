import StateSystem
import StateTestSupport
import StateWire

/// Clients with local copies over CLIENT TRACKING: none uses one that was void before it looked.
///
/// Each key's newest acknowledged number is known to all. Who looks notes it first, then takes what has arrived, and then
/// its copy may not be older: the invalidation left before the reply to the write.
final class TrackingCheck: @unchecked Sendable {
    private let operations: Int
    private let clientCount: Int
    private let keyCount: Int
    private let tableLimit: Int
    private let directory: TemporaryDirectory
    /// The newest number of each key that a writer has a reply for.
    private let acknowledged: StateLock<[Int]>
    private let totals = StateLock(Totals())

    struct Totals {
        var reads = 0
        var writes = 0
        var copies = 0
        var invalidations = 0
        var failure: (any Error)?
    }

    init(_ options: Options) throws {
        operations = try options.number("operations", standard: 1_000_000)
        clientCount = try options.number("clients", standard: 8)
        keyCount = try options.number("keys", standard: 2_000)
        tableLimit = try options.number("table", standard: 1_000)
        directory = try options.makeDirectory()
        acknowledged = StateLock([Int](repeating: 0, count: keyCount))
    }

    func run() throws {
        try directory.write("{ limits: { trackedKeys: \(tableLimit) } }", to: "c.json5")
        let daemon = try Daemon("--config", directory.path(of: "c.json5"), directory: directory)
        let before = try kibibytes("VmRSS", of: daemon.pid)
        let threads = (0..<clientCount).map { number in
            let thread = WorkerThread(name: "cache")
            let socket = daemon.socketPath
            thread.start { [self] in
                do { try work(number, socket) } catch { totals.withLock { $0.failure = error } }
            }
            return thread
        }
        let observer = try Wire(daemon.socketPath)
        var largest = 0
        while totals.withLock({
            $0.failure == nil && $0.reads + $0.writes < operations / clientCount * clientCount
        }) {
            largest = max(largest, try itemCount(observer))
            sleep(until: wallNanoseconds() + 20_000_000)
        }
        for thread in threads { thread.join() }
        let found = totals.withLock { $0 }
        if let failure = found.failure { throw failure }
        let after = try kibibytes("VmRSS", of: daemon.pid)
        try daemon.stop()
        print(
            "tracking: \(found.reads) reads (\(found.copies) of copies) and \(found.writes) writes of \(clientCount) clients, "
                + "\(found.invalidations) keys invalidated, no stale copy; the table had at most \(largest) "
                + "of \(tableLimit) items; resident \(before) KiB before, \(after) KiB after"
        )
        guard largest <= tableLimit, after - before < 32 << 10 else {
            throw Failure("the table is not bounded")
        }
    }

    private func itemCount(_ wire: Wire) throws -> Int {
        let info = try wire.ask("INFO", "stats").textValue ?? ""
        for line in info.split(whereSeparator: \.isNewline)
        where line.hasPrefix("tracking_total_items:") {
            if let number = Int(line.dropFirst("tracking_total_items:".count)) { return number }
        }
        throw Failure("INFO has no tracking_total_items")
    }

    private func work(_ number: Int, _ socket: String) throws {
        let cache = try Cache(socket)
        var random = SplitMix(seed: UInt64(number) &* 7919 &+ 1)
        for turn in 0..<operations / clientCount {
            let isWrite = random.chance(20)
            if isWrite {
                // Each key has one writer, so that its numbers rise.
                let key =
                    Int.random(in: 0..<keyCount / clientCount, using: &random) * clientCount
                    + number
                let next = turn + 1
                try cache.set(key, next)
                acknowledged.withLock { $0[key] = next }
            } else {
                let key = Int.random(in: 0..<keyCount, using: &random)
                let least = acknowledged.withLock { $0[key] }
                let value = try cache.get(key)
                guard value >= least else {
                    throw Failure(
                        "client \(number) has \(value) of key \(key), where \(least) was acknowledged"
                    )
                }
            }
            totals.withLock { totals in
                if isWrite { totals.writes += 1 } else { totals.reads += 1 }
            }
        }
        totals.withLock {
            $0.copies += cache.copyReads
            $0.invalidations += cache.invalidationCount
        }
    }
}

/// A client that keeps what it has read until it is told that it is void.
private final class Cache {
    private let wire: Wire
    private var copies: [String: Int] = [:]
    private(set) var copyReads = 0
    private(set) var invalidationCount = 0

    init(_ socket: String) throws {
        wire = try Wire(socket)
        try wire.ask("HELLO", "3")
        try wire.ask("CLIENT", "TRACKING", "ON")
    }

    /// The number that a key has; 0 if it is absent.
    func get(_ number: Int) throws -> Int {
        while let reply = try wire.arrived() { take(reply) }
        let key = "k\(number)"
        if let copy = copies[key] {
            copyReads += 1
            return copy
        }
        try wire.send(Wire.command(["GET", key]))
        let value = try reply().textValue.flatMap { Int($0) } ?? 0
        copies[key] = value
        return value
    }

    func set(_ number: Int, _ value: Int) throws {
        try wire.send(Wire.command(["SET", "k\(number)", "\(value)"]))
        guard try reply() == .simple("OK") else { throw Failure("SET was refused") }
    }

    /// What is no push, and before it what is.
    private func reply() throws -> Reply {
        while true {
            let next = try wire.next()
            guard case .push = next else { return next }
            take(next)
        }
    }

    private func take(_ reply: Reply) {
        guard case .push(let parts) = reply, parts[0].textValue == "invalidate" else { return }
        guard let keys = parts[1].elements else { return copies.removeAll() }
        invalidationCount += keys.count
        for key in keys { if let key = key.textValue { copies[key] = nil } }
    }
}
