/// Measures, for many subscribers and one paced writer, how long a value takes to each of them.
enum DeliveryCommand {
    static func run(_ options: Options) throws(BenchError) {
        try FileDescriptors.raiseLimit()
        let watchers = try options.number("watchers", standard: 100)
        let rate = try options.number("rate", standard: 500)
        let seconds = try options.number("seconds", standard: 5)
        let route = try DeliveryRoute(options)
        let byteCount = try options.number(
            "value-bytes",
            standard: 64,
            least: DeliveryStamp.byteCount + 1
        )
        let audience = try DeliveryAudience(route, count: watchers)
        let writer = try DeliveryWriter(route, valueByteCount: byteCount, rate: rate)
        let count = rate * seconds
        let warmUp = rate / 2
        writer.start(count: warmUp + count)
        // Order matters: a writer's error is reported only after the audience has ended.
        let isComplete = try audience.listen(for: warmUp + count, skipping: warmUp)
        let report = writer.finish()
        if let error = report.error { throw error }
        guard isComplete else {
            let expected = (warmUp + count) * watchers
            let delivered = audience.deliveredCount
            throw .failed("\(delivered) of \(expected) deliveries, then none for 10 s")
        }
        print("watchers \(watchers)")
        print("per_second \(Int(report.perSecond))")
        print("deliveries \(audience.latencies.count)")
        for line in audience.latencies.lines("delivery") { print(line) }
    }
}

/// The connections that wait for values, all on this thread, and the time that each value took to
/// each of them.
///
/// A latency ends when the `read` of the value has returned. Parsing it is not counted for this
/// value, but for those that wait in other connections meanwhile, as in any single-threaded
/// program.
final class DeliveryAudience {
    private let route: DeliveryRoute
    private let poller: Poller
    private var connections: [Connection] = []
    /// The number of deliveries, including the warm-up.
    private(set) var deliveredCount = 0
    private(set) var latencies = Latencies(expecting: 0)

    init(_ route: DeliveryRoute, count: Int) throws(BenchError) {
        self.route = route
        poller = try Poller()
        for number in 0..<count {
            let connection = try route.connectSubscriber()
            try route.subscribe(connection)
            try connection.becomeNonBlocking()
            try poller.add(connection.descriptor, number: number)
            connections.append(connection)
        }
    }

    /// Listens until each connection has received `count` values; the first `warmUp` are not
    /// measured.
    ///
    /// - Returns: Whether they arrived; false if none arrived for 10 s.
    func listen(for count: Int, skipping warmUp: Int) throws(BenchError) -> Bool {
        latencies = Latencies(expecting: (count - warmUp) * connections.count)
        let skipped = warmUp * connections.count
        while deliveredCount < count * connections.count {
            let isReady = try poller.wait(milliseconds: 10_000) { (number, _) throws(BenchError) in
                let connection = connections[number]
                if case .cut = try connection.receive() {
                    throw .failed("the connection was closed")
                }
                let now = MonotonicClock.now
                try route.takeStamps(connection) { stamp in
                    deliveredCount += 1
                    if deliveredCount > skipped { latencies.add(now - stamp) }
                }
            }
            if !isReady { return false }
        }
        return true
    }
}
