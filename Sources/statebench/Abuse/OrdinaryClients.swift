/// Ten clients that each GET a key a millisecond after the last reply, one that PINGs in the same way,
/// and one that SETs.
final class OrdinaryClients {
    /// How long the clients waited.
    struct Report {
        var gets = Latencies(expecting: 100_000)
        var pings = Latencies(expecting: 10_000)
        var sets = Latencies(expecting: 10_000)
    }

    private enum Task { case get, ping, set }

    private final class Client {
        var connection: Connection
        let task: Task
        /// When its request was sent; nil if it has none in flight.
        var sentAt: UInt64?
        var dueAt: UInt64 = 0

        init(_ connection: Connection, _ task: Task) {
            (self.connection, self.task) = (connection, task)
        }
    }

    private static let getCount = 10
    private static let pause: UInt64 = 1_000_000

    /// How long to wait for a reply.
    private static let patience: UInt64 = 20_000_000_000

    private let socket: String
    private let poller: Poller
    private var clients: [Client] = []
    private var get = RequestTemplate.get()
    private var random = SplitMix(seed: 1)
    private let keyCount: Int
    private var report = Report()

    init(socket: String, keyCount: Int) throws(BenchError) {
        self.socket = socket
        self.keyCount = keyCount
        poller = try Poller()
        let tasks = Array(repeating: Task.get, count: OrdinaryClients.getCount) + [.ping, .set]
        for (number, task) in tasks.enumerated() {
            clients.append(Client(try connect(number), task))
        }
    }

    private func connect(_ number: Int) throws(BenchError) -> Connection {
        let connection = try Connection(socket: socket)
        try connection.becomeNonBlocking()
        try poller.add(connection.descriptor, number: number)
        return connection
    }

    /// Runs for `seconds`, and until every reply has arrived or is given up.
    func run(seconds: Int) throws(BenchError) -> Report {
        let end = MonotonicClock.now + UInt64(seconds) * 1_000_000_000
        report = Report()
        while MonotonicClock.now < end {
            for client in clients where client.sentAt == nil && client.dueAt <= MonotonicClock.now {
                try send(client)
            }
            try poller.wait(milliseconds: 1) { (number, _) throws(BenchError) in
                try receive(clients[number])
            }
        }
        for number in clients.indices where clients[number].sentAt != nil { try finish(number) }
        return report
    }

    private func send(_ client: Client) throws(BenchError) {
        switch client.task {
        case .get: get.append(to: &client.connection.output, key: random.next(below: keyCount))
        case .ping: client.connection.output.append(command: ["PING"])
        case .set: client.connection.output.append(command: ["SET", "ordinary", "v"])
        }
        client.sentAt = MonotonicClock.now
        guard try client.connection.flush(), client.connection.output.isEmpty else {
            throw .failed("the server does not read an ordinary client's requests")
        }
    }

    private func receive(_ client: Client) throws(BenchError) {
        if case .cut = try client.connection.receive() {
            throw .failed("the server closed an ordinary client's connection")
        }
        try client.connection.takeReplies { (reply) throws(BenchError) in
            guard reply[0] != UInt8(ascii: "-") else {
                throw .failed(String(decoding: reply, as: UTF8.self))
            }
            note(client)
        }
    }

    private func note(_ client: Client) {
        guard let sentAt = client.sentAt else { return }
        let now = MonotonicClock.now
        switch client.task {
        case .get: report.gets.add(now - sentAt)
        case .ping: report.pings.add(now - sentAt)
        case .set: report.sets.add(now - sentAt)
        }
        client.sentAt = nil
        client.dueAt = now + OrdinaryClients.pause
    }

    /// Waits for an outstanding reply; one that is given up counts as long as it was waited for.
    private func finish(_ number: Int) throws(BenchError) {
        let client = clients[number]
        while let sentAt = client.sentAt, MonotonicClock.now < sentAt + OrdinaryClients.patience {
            try poller.wait(milliseconds: 100) { (number, _) throws(BenchError) in
                try receive(clients[number])
            }
        }
        guard client.sentAt != nil else { return }
        note(client)
        poller.remove(client.connection.descriptor)
        client.connection = try connect(number)
    }
}
