/// The clients of one life of the daemon: a watcher of everything, and writers.
struct Session {
    /// Something that a client was sent, and how many bytes it had been sent up to its end.
    struct Heard {
        var connection: Int
        var end: Int
        var revision: Int64
    }

    var writers: [Writer]
    private(set) var commits: [Commit] = []
    private(set) var heard: [Heard] = []
    private(set) var epoch = ""
    private(set) var epochEnd = 0
    private let watcher: Connection
    private let connections: [Connection]
    /// What each writer has asked for and the watcher has not seen yet, with the end of its answer
    /// if that says that it is on stable storage.
    private var expected: [[(changes: [String: [UInt8]?], end: Int?)]]

    /// Connects, the watcher first: the recorder counts connections in the order in which they are
    /// made.
    init(
        _ socket: String,
        _ writers: [Writer],
        after history: History,
        while isAlive: () -> Bool
    ) throws(Failure) {
        self.writers = writers
        watcher = try Connection(path: socket, while: isAlive)
        var connections: [Connection] = []
        for _ in writers { connections.append(try Connection(path: socket, while: isAlive)) }
        self.connections = connections
        expected = writers.map { _ in [] }
        try catchUp(history)
        watcher.send(["STATE.WATCH", "/"])
        let (answer, end) = try watcher.read()
        guard let epoch = answer["epoch"]?.string else {
            throw Failure("a watch was refused: \(answer)")
        }
        (self.epoch, epochEnd) = (epoch, end)
    }

    /// A start without a crash changes nothing that is stored.
    private func catchUp(_ history: History) throws(Failure) {
        let seen = try Observation.entries(Keys.storedPatterns, watcher)
        let difference = Comparison.difference(of: seen, from: history.state(at: .max))
        if let difference { throw Failure("after a start without a power failure: \(difference)") }
    }

    mutating func take(_ step: Workload.Step, _ random: inout Random) throws(Failure) {
        switch step {
        case .operations(let count): try write(count, &random)
        case .compact(let share):
            let newest = commits.last?.revision ?? 0
            let revision = Int64(Double(newest) * share)
            if revision > 0 { try command(["STATE.COMPACT", "TO", "\(revision)"]) }
        case .shrink: try command(["STATE.COMPACT", "SHRINK"])
        }
    }

    /// Waits until nothing of it is under way: what was sent before is recorded then, also if the
    /// daemon is killed.
    func rest() throws(Failure) {
        for connection in connections + [watcher] { _ = try connection.ask("PING") }
    }

    private func command(_ words: [String]) throws(Failure) {
        connections[0].send(words)
        let answer = try connections[0].read().value
        if case .error(let text) = answer { throw Failure("\(words): \(text)") }
    }

    /// Sends operations of several writers and reads by others, and waits until all are answered
    /// and delivered.
    private mutating func write(_ count: Int, _ random: inout Random) throws(Failure) {
        var asked: [(connection: Int, operation: Operation?, key: String)] = []
        for _ in 0..<count {
            let writer = random.below(writers.count)
            let operation = writers[writer].next(&random)
            for command in operation.commands { connections[writer].send(command) }
            let key = operation.changes.keys.sorted()[0]
            asked.append((writer, operation, key))
            guard random.chance(0.3) else { continue }
            let reader = random.below(writers.count)
            connections[reader].send(["GET", key])
            asked.append((reader, nil, key))
        }
        var reads: [(key: String, value: [UInt8], heard: Heard)] = []
        for (connection, operation, key) in asked {
            if let operation {
                try readAnswers(to: operation, connection)
            } else {
                let (value, end) = try connections[connection].read()
                guard let bytes = value.bytes else { continue }
                reads.append((key, bytes, Heard(connection: connection + 1, end: end, revision: 0)))
            }
        }
        while expected.contains(where: { !$0.isEmpty }) { try readPush() }
        for (key, value, heard) in reads { note(heard, of: key, value) }
    }

    private mutating func readAnswers(
        to operation: Operation,
        _ writer: Int
    ) throws(Failure) {
        var answer: (value: Value, end: Int) = (.null, 0)
        for _ in operation.commands { answer = try connections[writer].read() }
        guard operation.isAnswer(answer.value) else {
            throw Failure("\(operation.changes.keys.sorted()): \(answer.value)")
        }
        expected[writer].append((operation.changes, operation.isSynced ? answer.end : nil))
    }

    /// Who has read a value knows the transaction that it is of.
    private mutating func note(_ read: Heard, of key: String, _ value: [UInt8]) {
        guard let commit = commits.last(where: { $0.changes[key] == .some(value) }) else { return }
        heard.append(
            Heard(connection: read.connection, end: read.end, revision: commit.revision)
        )
    }

    private mutating func readPush() throws(Failure) {
        let (value, end) = try watcher.read()
        guard case .push(let parts) = value, let kind = parts.first?.string else {
            throw Failure("the watcher was sent \(value)")
        }
        if kind == "state.progress" { return }
        guard kind == "state.change", parts.count == 4,
            let commit = Observation.commit(revision: parts[2], changes: parts[3])
        else { throw Failure("the watcher was sent \(value)") }
        guard commit.revision > commits.last?.revision ?? 0 else {
            throw Failure("revision \(commit.revision) was delivered out of order")
        }
        try settle(commit, end)
    }

    /// Finds the writer who has asked for a commit.
    private mutating func settle(_ commit: Commit, _ end: Int) throws(Failure) {
        for index in expected.indices where expected[index].first?.changes == commit.changes {
            let answered = expected[index].removeFirst()
            commits.append(commit)
            heard.append(Heard(connection: 0, end: end, revision: commit.revision))
            if let end = answered.end {
                heard.append(Heard(connection: index + 1, end: end, revision: commit.revision))
            }
            return
        }
        throw Failure(
            "revision \(commit.revision), of \(commit.changes.keys.sorted()), is nobody's"
        )
    }
}
