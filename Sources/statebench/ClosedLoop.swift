import CLinux
import Glibc

/// The parameters of a run.
struct Plan {
    var socket: String
    var clients: Int
    var pipeline: Int
    var requests: Int
    var keys: Int
    var valueByteCount: Int
    /// Whether the value is a number with that many digits.
    var isNumber = false
    /// How many of a hundred requests are SETs.
    var writePercent: Int
    /// Uses each key once, in order, not at random.
    var isSequential = false
    var seed: Int
    /// How many watches run meanwhile, each with its own prefix.
    var watchers = 0
    /// How many connections they use.
    var watchConnections = 0
    /// Whether keys are set below the prefix of the first watch, or below none.
    var isWatched = false
    /// What all keys and prefixes begin with.
    var folder = ""
}

/// The results of a run.
struct Measurement {
    var nanoseconds: UInt64 = 0
    var requests: Int
    /// How many GETs found no key.
    var misses = 0
    var reads: Latencies
    var writes: Latencies

    func print() {
        let perSecond = Double(requests) * 1e9 / Double(nanoseconds)
        var lines = ["requests \(requests)", "per_second \(Int(perSecond))", "misses \(misses)"]
        lines += reads.lines("read") + writes.lines("write")
        for line in lines { Swift.print(line) }
    }
}

/// Clients on one thread that each send a batch, wait for all its replies and send the next.
///
/// A latency lasts from before a batch is written until its last reply is read.
final class ClosedLoop {
    /// One client and the batch that it waits for.
    private final class Client {
        let connection: Connection
        var repliesLeft = 0
        var isWrite = false
        var startedAt: UInt64 = 0

        init(_ connection: Connection) { self.connection = connection }
    }

    private let plan: Plan
    private let poller: Poller
    private var clients: [Client] = []
    /// Their poller numbers follow those of the clients.
    private var watchers: [Connection] = []
    private var random: SplitMix
    private var getTemplate: RequestTemplate
    private var setTemplate: RequestTemplate
    private var sent = 0
    private var answered = 0
    private var measurement: Measurement

    init(_ plan: Plan) throws(BenchError) {
        self.plan = plan
        poller = try Poller()
        random = SplitMix(seed: UInt64(plan.seed))
        setTemplate = .set(
            valueByteCount: plan.valueByteCount,
            isNumber: plan.isNumber,
            folder: plan.folder + (plan.isWatched ? ClosedLoop.folder(0) : "")
        )
        getTemplate = .get(folder: plan.folder)
        let writes = plan.requests / 100 * plan.writePercent
        measurement = Measurement(
            requests: plan.requests,
            reads: Latencies(expecting: plan.requests - writes),
            writes: Latencies(expecting: writes)
        )
        for number in 0..<plan.clients {
            let connection = try Connection(socket: plan.socket)
            try connection.becomeNonBlocking()
            try poller.add(connection.descriptor, number: number)
            clients.append(Client(connection))
        }
        for number in 0..<min(plan.watchers, plan.watchConnections) { try addWatchers(number) }
    }

    private static func folder(_ number: Int) -> String { "watched/\(number)/" }

    /// Adds connection `number`, with its share of the watches.
    private func addWatchers(_ number: Int) throws(BenchError) {
        let connection = try Connection(socket: plan.socket)
        try connection.ask("HELLO", "3")
        for watcher in stride(from: number, to: plan.watchers, by: plan.watchConnections) {
            try connection.ask("STATE.WATCH", plan.folder + ClosedLoop.folder(watcher))
        }
        try connection.becomeNonBlocking()
        try poller.add(connection.descriptor, number: plan.clients + number)
        watchers.append(connection)
    }

    func run() throws(BenchError) -> Measurement {
        let start = MonotonicClock.now
        for number in clients.indices { try sendBatch(number, at: MonotonicClock.now) }
        while answered < plan.requests {
            try poller.wait { (number, isWritable) throws(BenchError) in
                if isWritable { try flush(number) }
                try receive(number)
            }
        }
        measurement.nanoseconds = MonotonicClock.now - start
        return measurement
    }

    private func sendBatch(_ number: Int, at now: UInt64) throws(BenchError) {
        let client = clients[number]
        let count = min(plan.pipeline, plan.requests - sent)
        guard count > 0 else { return }
        client.isWrite = plan.writePercent == 100 || random.next(below: 100) < plan.writePercent
        for _ in 0..<count {
            let key = plan.isSequential ? sent % plan.keys : random.next(below: plan.keys)
            if client.isWrite {
                setTemplate.append(to: &client.connection.output, key: key)
            } else {
                getTemplate.append(to: &client.connection.output, key: key)
            }
            sent += 1
        }
        client.repliesLeft = count
        client.startedAt = now
        try flush(number)
    }

    private func flush(_ number: Int) throws(BenchError) {
        guard try clients[number].connection.flush(poller, number: number) else {
            throw .failed("the connection was closed")
        }
    }

    private func receive(_ number: Int) throws(BenchError) {
        guard number < clients.count else {
            let watcher = watchers[number - clients.count]
            if case .cut = try watcher.receive() { throw .failed("the connection was closed") }
            watcher.consumeReceived(watcher.receivedBytes.count)
            return
        }
        let client = clients[number]
        switch try client.connection.receive() {
        case .nothing: return
        case .cut: throw .failed("the connection was closed")
        case .bytes: break
        }
        try client.connection.takeReplies { (reply) throws(BenchError) in
            if reply[0] == UInt8(ascii: "-") {
                throw .failed(String(decoding: reply, as: UTF8.self))
            }
            if !client.isWrite, reply.count < 6, reply[1] == UInt8(ascii: "-") {
                measurement.misses += 1
            }
            client.repliesLeft -= 1
            answered += 1
        }
        guard client.repliesLeft == 0 else { return }
        let now = MonotonicClock.now
        if client.isWrite {
            measurement.writes.add(now - client.startedAt)
        } else {
            measurement.reads.add(now - client.startedAt)
        }
        try sendBatch(number, at: now)
    }
}
