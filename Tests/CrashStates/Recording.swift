import Glibc

/// A workload that was run once: what the daemon did, and what it said.
struct Recording {
    /// Something that a client knows, and after which event it may have known it.
    struct Told {
        var event: Int
        var revision: Int64
        var isDelivered: Bool
    }

    var trace = Trace()
    var history = History()
    var told: [Told] = []
    var epoch = ""
    /// After which event somebody may have known the epoch.
    var epochEvent = 0
    /// The configurations of the lives, and their rules.
    var configurations: [String] = []
    var rules: [[Workload.Rule]] = []

    /// The newest revision that somebody may have known after an event; 0 for none.
    func newestTold(at event: Int, where isMeant: (Commit) -> Bool = { _ in true }) -> Int64 {
        let revisions = Set(history.commits.lazy.filter(isMeant).map(\.revision))
        return told.lazy.filter { $0.event <= event && revisions.contains($0.revision) }
            .map(\.revision).max() ?? 0
    }

    /// The life that an event is of.
    func life(of event: Int) -> Int { (trace.lives.lastIndex { $0.first <= event }) ?? 0 }
}

/// Runs a workload under the recorder.
struct Recorder {
    let program: String
    let directory: StateDirectory
    var random: Random
    private var recording = Recording()
    private var writers: [Writer]
    private let workload: Workload

    init(_ workload: Workload, program: String, in directory: StateDirectory, _ random: Random) {
        self.workload = workload
        self.program = program
        self.directory = directory
        self.random = random
        writers = (0..<3).map { Writer(number: $0, mix: workload.mix) }
    }

    mutating func run() throws(Failure) -> Recording {
        for (number, life) in workload.lives.enumerated() {
            let rules = life.rules.map { $0.text(in: directory.root) }
            let path = "\(directory.path)/c\(number).json5"
            let history = "{ changes: \(life.historyChanges) }"
            let text = "{ history: \(history), rules: [\(rules.joined(separator: ", "))] }\n"
            try Files.write(text, to: path)
            recording.configurations.append(path)
            recording.rules.append(life.rules)
            try run(life, path)
        }
        return recording
    }

    private mutating func run(_ life: Workload.Life, _ configuration: String) throws(Failure) {
        let log = "\(directory.path)/record\(recording.trace.lives.count)"
        let daemon = try Daemon(program, configuration: configuration, in: directory, record: log)
        for index in writers.indices { writers[index].beginLife(life.rules) }
        var session: Session
        do throws(Failure) {
            session = try Session(directory.socket, writers, after: recording.history) {
                daemon.isAlive
            }
            for step in life.steps { try session.take(step, &random) }
            try session.rest()
        } catch {
            daemon.end(SIGKILL)
            let text = (try? Files.contents(of: directory.log)) ?? []
            throw Failure("\(error); its log: \(String(decoding: text, as: UTF8.self))")
        }
        try directory.keepFiles()
        daemon.end(life.isStopped ? SIGTERM : SIGKILL)
        if life.isStopped, daemon.status != 0 {
            throw Failure("a stop ended with \(daemon.status)")
        }
        if !life.isStopped { try directory.keepFiles() }
        try recording.trace.append(log: log)
        unlink(log)
        try note(session)
        writers = session.writers
    }

    /// Adds what a life's clients know, once it is known when they may have known it.
    private mutating func note(_ session: Session) throws(Failure) {
        guard let life = recording.trace.lives.last else { return }
        for commit in session.commits { recording.history.append(commit) }
        for heard in session.heard {
            guard let event = life.begun(ofByte: heard.end, connection: heard.connection) else {
                throw Failure(
                    "byte \(heard.end) of connection \(heard.connection) was not recorded"
                )
            }
            let told = Recording.Told(
                event: event,
                revision: heard.revision,
                isDelivered: heard.connection == 0
            )
            recording.told.append(told)
        }
        if recording.epoch.isEmpty {
            recording.epoch = session.epoch
            recording.epochEvent = life.begun(ofByte: session.epochEnd, connection: 0) ?? 0
        }
        guard recording.epoch == session.epoch else {
            throw Failure(
                "the epoch was \(recording.epoch), and is \(session.epoch) without a crash"
            )
        }
    }
}
