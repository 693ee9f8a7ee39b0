import StateWire

/// Runs writers until the server is gone or the requested number of writes is done, with several
/// writes in flight each, and logs the acknowledgements.
enum WritersCommand {
    static func run(_ options: Options) throws(BenchError) {
        let path = try options.text("log")
        let count = try options.number("clients", standard: 8)
        let log = try TextFile.read(path).map(CrashLog.init) ?? CrashLog(writerCount: count)
        guard log.writers.allSatisfy(\.unanswered.isEmpty) else {
            throw .failed("the log '\(path)' has unanswered writes: run statebench check first")
        }
        let run = try CrashWriters(
            log,
            socket: options.text("socket"),
            seed: options.number("seed", standard: 1, least: 0),
            writes: options.number("writes", standard: Int.max),
            plain: options.has("plain")
        )
        try run.run()
        try TextFile.write(run.log.text, to: path)
        print("acknowledged \(run.acknowledged)")
        print("unanswered \(run.log.writers.reduce(0) { $0 + $1.unanswered.count })")
        print("revision \(run.log.revision)")
    }
}

private final class CrashWriters {
    private static let writesInFlight = 4

    private(set) var log: CrashLog
    private(set) var acknowledged = 0
    private let plain: Bool
    private var writesLeft: Int
    private let poller: Poller
    private var connections: [Connection] = []
    private var random: SplitMix
    /// How many replies of each writer's oldest unanswered write are missing.
    private var repliesLeft: [Int]
    /// The last acknowledged revision of each connection: the next must be higher.
    private var lastAcknowledged: [Int]
    private var connectionsLeft: Int

    init(
        _ log: CrashLog,
        socket: String,
        seed: Int,
        writes: Int,
        plain: Bool
    ) throws(BenchError) {
        self.log = log
        self.plain = plain
        writesLeft = writes
        poller = try Poller()
        random = SplitMix(seed: UInt64(seed))
        repliesLeft = Array(repeating: 0, count: log.writers.count)
        // Not 0: a revision of this run must be higher than all that were acknowledged before it.
        lastAcknowledged = Array(repeating: log.revision, count: log.writers.count)
        connectionsLeft = log.writers.count
        for number in log.writers.indices {
            let connection = try Connection(socket: socket)
            try connection.becomeNonBlocking()
            try poller.add(connection.descriptor, number: number)
            connections.append(connection)
        }
    }

    func run() throws(BenchError) {
        for number in connections.indices { try send(number) }
        while connectionsLeft > 0, !isDone {
            try poller.wait { (number, _) throws(BenchError) in
                if case .cut = try connections[number].receive() {
                    poller.remove(connections[number].descriptor)
                    connectionsLeft -= 1
                    return
                }
                try connections[number].takeReplies { (bytes) throws(BenchError) in
                    try take(bytes, number)
                }
                try send(number)
            }
        }
    }

    private var isDone: Bool {
        writesLeft == 0 && log.writers.allSatisfy(\.unanswered.isEmpty)
    }

    /// Refills what is in flight.
    ///
    /// What a dead server did not read counts as sent too, because it may have arrived.
    private func send(_ number: Int) throws(BenchError) {
        while writesLeft > 0, log.writers[number].unanswered.count < Self.writesInFlight {
            writesLeft -= 1
            let stamp =
                (log.writers[number].unanswered.last?.stamp ?? log.writers[number].stamp) + 1
            let write = CrashWrite(stamp: stamp, random: &random, plain: plain)
            write.append(to: &connections[number].output, writer: number)
            log.writers[number].unanswered.append(write)
            if log.writers[number].unanswered.count == 1 { repliesLeft[number] = write.replyCount }
        }
        _ = try connections[number].flush(poller, number: number)
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ number: Int) throws(BenchError) {
        let reply = try Reply(whole: bytes)
        guard let write = log.writers[number].unanswered.first else {
            throw .failed("writer \(number) got an extra reply: \(reply)")
        }
        if case .error(let text) = reply { throw .failed("\(write) of writer \(number): \(text)") }
        repliesLeft[number] -= 1
        guard repliesLeft[number] == 0 else { return }
        if case .null = reply { throw .failed("\(write) of writer \(number): null") }
        let revision = try revision(in: reply, write, number)
        log.writers[number].settle(write, number: number, revision: revision)
        log.writers[number].unanswered.removeFirst()
        repliesLeft[number] = log.writers[number].unanswered.first?.replyCount ?? 0
        acknowledged += 1
    }

    /// The revision in the reply; 0 if it has none.
    private func revision(
        in reply: Reply,
        _ write: CrashWrite,
        _ number: Int
    ) throws(BenchError) -> Int {
        guard write.kind == .stateSet || write.kind == .apply else { return 0 }
        guard let revision = reply["revision"]?.integerValue.map(Int.init) else {
            throw .failed("\(write) of writer \(number): no revision in \(reply)")
        }
        guard revision > lastAcknowledged[number] else {
            throw .broken(
                law: "a revision never goes back",
                key: write.keys(writer: number)[0],
                "acknowledged \(revision) after \(lastAcknowledged[number])"
            )
        }
        lastAcknowledged[number] = revision
        log.revision = max(log.revision, revision)
        return revision
    }
}
