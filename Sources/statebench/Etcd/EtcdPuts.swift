import StateEtcd

/// Clients of etcd on one thread that each have one put under way.
///
/// A latency lasts from before a put is sent until its answer is read.
final class EtcdPuts {
    /// The parameters of a run.
    struct Plan {
        var endpoint: Endpoint
        var connections: Int
        /// How many puts are under way on each connection.
        var streams: Int
        var requests: Int
        var keys: Int
        var valueByteCount: Int
        var folder: String
        /// Whether each put is a transaction that compares a key, and puts a signature too: what a
        /// daemon would send if it sent each change alone.
        var isGuarded = false
        var seed: Int
    }

    private struct Put {
        let call: HTTP2Connection.Call
        let startedAt: UInt64
    }

    /// One connection, with what is under way on it.
    private final class Client {
        let etcd: EtcdClient
        var puts: [Put] = []
        var waitsForRoom = false

        init(_ etcd: EtcdClient) { self.etcd = etcd }
    }

    private let plan: Plan
    private let poller: Poller
    private var clients: [Client] = []
    private var random: SplitMix
    private let value: [UInt8]
    private let guardKey: [UInt8]
    private var sent = 0
    private var answered = 0
    private var measurement: Measurement

    /// Connects; each connection has had one answer then.
    init(_ plan: Plan) throws(BenchError) {
        self.plan = plan
        poller = try Poller()
        random = SplitMix(seed: UInt64(plan.seed))
        value = Array(repeating: UInt8(ascii: "v"), count: plan.valueByteCount)
        guardKey = Array("\(plan.folder)guard".utf8)
        measurement = Measurement(
            requests: plan.requests,
            reads: Latencies(expecting: 0),
            writes: Latencies(expecting: plan.requests)
        )
        for number in 0..<plan.connections {
            let etcd = try connect()
            try poller.add(etcd.descriptor, number: number)
            clients.append(Client(etcd))
        }
    }

    private func connect() throws(BenchError) -> EtcdClient {
        try BenchError.ofEtcd { () throws(LinkFailure) in
            let etcd = try EtcdClient(plan.endpoint, nil)
            _ = try etcd.call(.put, EtcdMessages.put(guardKey, value))
            return etcd
        }
    }

    func run() throws(BenchError) -> Measurement {
        let start = MonotonicClock.now
        for number in clients.indices {
            for _ in 0..<plan.streams { try put(number, at: MonotonicClock.now) }
            try flush(number)
        }
        while answered < plan.requests {
            let isReady = try poller.wait(milliseconds: 10_000) { (number, _) throws(BenchError) in
                try receive(number)
                try flush(number)
            }
            guard isReady else { throw .failed("no answer for 10 s") }
        }
        measurement.nanoseconds = MonotonicClock.now - start
        return measurement
    }

    private func put(_ number: Int, at now: UInt64) throws(BenchError) {
        guard sent < plan.requests else { return }
        sent += 1
        let key = key(random.next(below: plan.keys))
        let etcd = clients[number].etcd
        let call = try BenchError.ofEtcd { () throws(LinkFailure) in
            plan.isGuarded
                ? try etcd.begin(.transaction, guarded(key, number))
                : try etcd.begin(.put, EtcdMessages.put(key, value))
        }
        clients[number].puts.append(Put(call: call, startedAt: now))
    }

    private func guarded(_ key: [UInt8], _ number: Int) -> [UInt8] {
        let signatureKey = Array("\(plan.folder)by/\(number)".utf8)
        return EtcdTransaction(
            putting: value,
            at: key,
            signedAt: signatureKey,
            if: guardKey,
            has: value
        )
        .bytes
    }

    /// As ``RequestTemplate`` makes them.
    private func key(_ number: Int) -> [UInt8] {
        let digits = String(number)
        let zeros = String(repeating: "0", count: RequestTemplate.keyDigits - digits.utf8.count)
        return Array("\(plan.folder)key:\(zeros)\(digits)".utf8)
    }

    private func flush(_ number: Int) throws(BenchError) {
        let client = clients[number]
        try BenchError.ofEtcd { () throws(LinkFailure) in try client.etcd.flush() }
        guard client.etcd.wantsWrite != client.waitsForRoom else { return }
        client.waitsForRoom.toggle()
        try poller.change(client.etcd.descriptor, number: number, writable: client.waitsForRoom)
    }

    /// Puts again for each put that is answered.
    private func receive(_ number: Int) throws(BenchError) {
        let client = clients[number]
        try BenchError.ofEtcd { () throws(LinkFailure) in try client.etcd.receive() }
        let now = MonotonicClock.now
        let puts = client.puts
        client.puts = []
        for put in puts {
            let answer = try BenchError.ofEtcd { () throws(LinkFailure) in
                try client.etcd.answer(of: put.call)
            }
            guard let answer else {
                client.puts.append(put)
                continue
            }
            if plan.isGuarded, (try? EtcdTransaction.hasSucceeded(answer)) != true {
                throw .failed("a guarded put was not made")
            }
            measurement.writes.add(now - put.startedAt)
            answered += 1
            try self.put(number, at: now)
        }
    }
}

extension EtcdTransaction {
    /// A transaction of the same size as a daemon's with one change.
    init(
        putting value: [UInt8],
        at key: [UInt8],
        signedAt signatureKey: [UInt8],
        if guardKey: [UInt8],
        has expected: [UInt8]
    ) {
        self.init()
        require(guardKey, has: expected)
        put(signatureKey, value)
        put(key, value)
    }
}
