import StateEngine
import StateEtcd

/// A watch of a prefix at one member, and how long values take to it from a writer at another.
///
/// A latency ends when the event has been read.
struct EtcdDelivery {
    private let etcd: EtcdClient
    private let poller: Poller
    private let key: [UInt8]

    /// Begins the watch: it brings what is put from now on.
    init(_ endpoint: Endpoint, _ prefix: String, _ key: String) throws(BenchError) {
        (poller, self.key) = (try Poller(), Array(key.utf8))
        etcd = try BenchError.ofEtcd { () throws(LinkFailure) in
            let etcd = try EtcdClient(endpoint, nil)
            let revision = try etcd.range(Array(prefix.utf8)).header.revision
            try etcd.watch(Array(prefix.utf8), from: revision + 1)
            try etcd.flush()
            return etcd
        }
        try poller.add(etcd.descriptor, number: 0)
    }

    /// Lets the writer write, and prints what was measured; the first half second is not.
    func run(_ writer: EtcdWriter, _ rate: Int, seconds: Int) throws(BenchError) {
        let (warmUp, count) = (rate / 2, rate * seconds)
        writer.start(count: warmUp + count)
        // Order matters: a writer's error is reported only after the watch has ended.
        let latencies = try listen(for: warmUp + count, skipping: warmUp)
        if let error = writer.finish() { throw error }
        guard let latencies else { throw .failed("no event for 10 s") }
        print("deliveries \(latencies.count)")
        for line in latencies.lines("delivery") { print(line) }
    }

    /// - Returns: Nil if nothing has come for 10 s.
    private func listen(for count: Int, skipping warmUp: Int) throws(BenchError) -> Latencies? {
        var latencies = Latencies(expecting: count)
        var delivered = 0
        while delivered < count {
            guard try poller.wait(milliseconds: 10_000, { (_, _) throws(BenchError) in }) else {
                return nil
            }
            let (now, events) = try BenchError.ofEtcd { () throws(LinkFailure) in
                try etcd.receive()
                let now = MonotonicClock.now
                try etcd.flush()
                return (now, try etcd.takeEvents())
            }
            for event in events where event.entry.key == key {
                delivered += 1
                guard delivered > warmUp else { continue }
                latencies.add(now - DeliveryStamp.read(event.entry.value))
            }
        }
        return latencies
    }
}

/// Puts a value at each tick of a fixed rate, on its own thread, as ``DeliveryWriter`` does.
final class EtcdWriter: Sendable {
    private let endpoint: Endpoint
    private let key: [UInt8]
    private let valueByteCount: Int
    private let rate: Int
    /// Whether each put is a transaction as a daemon would send it; see ``EtcdPuts/Plan/isGuarded``.
    private let isGuarded: Bool
    private let thread = WorkerThread(name: "writer")
    private let failure = StateLock<BenchError?>(nil)

    init(
        _ endpoint: Endpoint,
        _ key: String,
        _ valueByteCount: Int,
        rate: Int,
        isGuarded: Bool
    ) {
        (self.endpoint, self.key) = (endpoint, Array(key.utf8))
        (self.valueByteCount, self.rate, self.isGuarded) = (valueByteCount, rate, isGuarded)
    }

    func start(count: Int) {
        thread.start { [self] in
            do throws(LinkFailure) {
                try write(count)
            } catch {
                failure.withLock { $0 = BenchError(error) }
            }
        }
    }

    /// Waits for the end.
    func finish() -> BenchError? {
        thread.join()
        return failure.withLock { $0 }
    }

    private func write(_ count: Int) throws(LinkFailure) {
        let etcd = try EtcdClient(endpoint, nil)
        _ = try etcd.range(key)
        var calls: [HTTP2Connection.Call] = []
        var value = Array(repeating: UInt8(ascii: "v"), count: valueByteCount)
        let (guardKey, signatureKey) = (key + Array(".guard".utf8), key + Array(".by".utf8))
        if isGuarded { _ = try etcd.call(.put, EtcdMessages.put(guardKey, guardKey)) }
        let start = MonotonicClock.now
        for number in 0..<count {
            MonotonicClock.sleep(until: start + UInt64(number) * 1_000_000_000 / UInt64(rate))
            DeliveryStamp.write(MonotonicClock.now, to: &value, at: 0)
            if isGuarded {
                let transaction = EtcdTransaction(
                    putting: value,
                    at: key,
                    signedAt: signatureKey,
                    if: guardKey,
                    has: guardKey
                )
                calls.append(try etcd.begin(.transaction, transaction.bytes))
            } else {
                calls.append(try etcd.begin(.put, EtcdMessages.put(key, value)))
            }
            try etcd.flush()
            try etcd.receive()
            try forgetAnswered(&calls, etcd)
        }
        let deadline = MonotonicClock.now + UInt64(EtcdClient.patience) * 1_000_000
        while !calls.isEmpty {
            guard MonotonicClock.now < deadline else { throw .cluster("no answer to a put") }
            MonotonicClock.pause(microseconds: 1000)
            try etcd.receive()
            try etcd.flush()
            try forgetAnswered(&calls, etcd)
        }
    }

    private func forgetAnswered(
        _ calls: inout [HTTP2Connection.Call],
        _ etcd: EtcdClient
    ) throws(LinkFailure) {
        var left: [HTTP2Connection.Call] = []
        for call in calls {
            if try etcd.answer(of: call) == nil { left.append(call) }
        }
        calls = left
    }
}
