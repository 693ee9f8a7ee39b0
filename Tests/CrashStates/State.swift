import CCrashRecorder
import Glibc

/// One state that a crash may have left, and what a start makes of it.
struct State {
    let recording: Recording
    let plan: Plan
    /// The event before which the crash was.
    let event: Int
    /// Which configuration the start has.
    var life: Int
    var image: CrashImage
    var description: String
    /// Whether the start comes some time after the crash.
    var isLate = true
    /// What was sent; after a start in between, what that served and was sent.
    var history: History
    /// What a start in between is sure to have served; 0 for nothing.
    var served: Int64 = 0
    /// What the start did, if that was recorded.
    var trace: Trace?
    /// What it served: the newest revision, and how many bytes it had sent with that.
    private(set) var answers: [(end: Int, revision: Int64)] = []

    init(
        recording: Recording,
        plan: Plan,
        event: Int,
        life: Int,
        image: CrashImage,
        description: String
    ) {
        (self.recording, self.plan, self.event, self.life) = (recording, plan, event, life)
        (self.image, self.description) = (image, description)
        history = recording.history
    }

    private var rules: [Workload.Rule] { recording.rules[life].filter { $0.directory != nil } }

    /// What was done last before the crash, for a person.
    var lastEvents: [String] {
        recording.trace.events[max(0, event - 60)..<min(event, recording.trace.events.count)].map {
            let record = $0.record
            return
                "\($0.kind.rawValue) \(record.descriptor) \($0.path) \($0.other) at \(record.offset), \(record.length) bytes, argument \(record.argument), result \(record.result)"
        }
    }

    mutating func check(isRecorded: Bool) throws(Failure) -> [Difference] {
        if !image.directories.contains("d"), recording.epochEvent <= event {
            return [
                Difference(kind: .directory, text: "all up to \(recording.newestTold(at: event))")
            ]
        }
        try plan.directory.build(image)
        // The daemon takes no file of a key that was changed less than 100 ms ago: as after a power failure, or at once.
        if isLate, recording.rules.contains(where: { !$0.isEmpty }) { usleep(120_000) }
        let log = "\(plan.directory.path)/record-start"
        let daemon = try Daemon(
            plan.program,
            configuration: recording.configurations[life],
            in: plan.directory,
            record: isRecorded ? log : nil
        )
        let differences = differences(daemon)
        if isRecorded {
            try plan.directory.keepFiles()
            daemon.end(SIGKILL)
            try plan.directory.keepFiles()
            var trace = Trace()
            try trace.append(log: log)
            self.trace = trace
        }
        return differences
    }

    private mutating func differences(_ daemon: Daemon) -> [Difference] {
        do throws(Failure) {
            let connection = try Connection(path: plan.directory.socket) { daemon.isAlive }
            let seen = try Observation(connection)
            let comparison = Comparison(
                recording: recording,
                history: history,
                event: event,
                served: served
            )
            var found = comparison.differences(of: seen)
            let newest = comparison.newest(of: seen)
            history.cut(to: newest)
            answers = [(connection.end, newest)]
            found += try gapDifferences(connection)
            found += try fileDifferences(seen, connection)
            found += try repetition(seen, connection)
            return found
        } catch {
            let log = (try? Files.contents(of: plan.directory.log)) ?? []
            let text = String(decoding: log.suffix(600), as: UTF8.self)
            return [Difference(kind: .refused, text: "\(error); its log: \(text)")]
        }
    }

    // MARK: Files

    private func fileDifferences(
        _ seen: Observation,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        guard recording.rules.contains(where: { $0.contains { $0.directory != nil } }) else {
            return []
        }
        let deadline = Clock.now() + 600
        while true {
            let found = filesNow(seen)
            if found.isEmpty || Clock.now() > deadline {
                return found + (try laterCommits(seen, connection))
            }
            usleep(20_000)
        }
    }

    /// What the files are, beside what was served.
    private func filesNow(_ seen: Observation) -> [Difference] {
        var found: [Difference] = []
        for directory in StateDirectory.ruled {
            let path = "\(plan.directory.root)/\(directory)"
            var expected: [String: [UInt8]] = [:]
            if let rule = rules.first(where: { $0.directory == directory }) {
                for (key, entry) in seen.entries where key.hasPrefix(rule.prefix) {
                    expected[String(key.dropFirst(rule.prefix.count))] = entry.value
                }
            }
            let names = Files.files(below: path)
            for name in names where name.contains(".stated-") {
                found.append(Difference(kind: .leftover, text: "\(directory)/\(name)"))
            }
            for name in Set(names).union(expected.keys).sorted() where !name.contains(".stated-") {
                let bytes = try? Files.contents(of: "\(path)/\(name)")
                if bytes == expected[name] { continue }
                let text =
                    "\(directory)/\(name) has \(bytes?.count ?? -1) bytes, and \(expected[name]?.count ?? -1) are served"
                found.append(Difference(kind: .files, text: text))
            }
        }
        return found
    }

    /// Files that became transactions after the state was asked for.
    private func laterCommits(
        _ seen: Observation,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        let now = try Observation(connection)
        let newest = seen.commits.last?.revision ?? seen.compacted
        return now.commits.filter { $0.revision > newest }.map {
            Difference(
                kind: .adopted,
                text: "revision \($0.revision), later: \($0.changes.keys.sorted())"
            )
        }
    }

    // MARK: Memory

    /// Whoever knows of keys in memory is told that they are gone.
    private func gapDifferences(_ connection: Connection) throws(Failure) -> [Difference] {
        let told = recording.newestTold(at: event) {
            !$0.stored.keys.elementsEqual($0.changes.keys)
        }
        guard told > 0 else { return [] }
        let answer = try connection.ask("STATE.CHANGES", "SINCE", "\(told)", Keys.memoryPattern)
        guard answer.list?.first?.string != "gap" else { return [] }
        return [Difference(kind: .memory, text: "no gap for who knows revision \(told): \(answer)")]
    }

    // MARK: Revisions

    /// A new transaction has to have a revision that nobody knows.
    private mutating func repetition(
        _ seen: Observation,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        let answer = try connection.ask("STATE.SET", "k/probe", "x")
        guard let revision = answer["revision"]?.number else {
            return [Difference(kind: .refused, text: "a write after the start: \(answer)")]
        }
        history.append(Commit(revision: revision, changes: ["k/probe": Array("x".utf8)]))
        answers.append((connection.end, revision))
        let told = recording.newestTold(at: event)
        guard seen.epoch == recording.epoch, revision <= told else { return [] }
        return [Difference(kind: .repeated, text: "\(revision), and \(told) was told")]
    }
}
