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
    /// Whether the daemon is stopped and started again afterwards.
    var isRestarted = false
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

    /// For a person: what the start said, and what was done last before the crash.
    var report: [String] {
        let log = (try? Files.contents(of: plan.directory.log)) ?? []
        let end = min(event, recording.trace.events.count)
        let configuration = (try? Files.contents(of: recording.configurations[life])) ?? []
        return [
            String(decoding: configuration, as: UTF8.self), String(decoding: log, as: UTF8.self),
        ] + recording.trace.events[max(0, end - 200)..<end].map(\.description)
    }

    mutating func check(isRecorded: Bool) throws(Failure) -> [Difference] {
        if !image.directories.contains("d"), recording.epochEvent <= event {
            return [
                Difference(kind: .directory, text: "all up to \(recording.newestTold(at: event))")
            ]
        }
        try plan.directory.build(image)
        // The daemon takes no file of a key that was changed less than 100 ms ago: as after a power
        // failure, or at once.
        if isLate, recording.rules.contains(where: { !$0.isEmpty }) { usleep(120_000) }
        let log = "\(plan.directory.path)/record-start"
        let daemon = try Daemon(
            plan.program,
            configuration: recording.configurations[life],
            in: plan.directory,
            record: isRecorded ? log : nil
        )
        var differences = differences(daemon)
        if isRestarted { differences += try restart(daemon) }
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

    /// Starts once more, after a stop: what the first start has left undone shows then.
    private mutating func restart(_ daemon: Daemon) throws(Failure) -> [Difference] {
        guard let newest = answers.last?.revision, daemon.isAlive else { return [] }
        daemon.end(SIGTERM)
        served = max(served, newest)
        let again = try Daemon(
            plan.program,
            configuration: recording.configurations[life],
            in: plan.directory,
            record: nil
        )
        return differences(again).map {
            Difference(kind: $0.kind, text: "after another start: \($0.text)")
        }
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
            found += try gapDifferences(newest, connection)
            found += try fileDifferences(seen, connection)
            found += try repetition(seen, connection)
            found += try laterWrite(seen, connection)
            return found
        } catch {
            let log = (try? Files.contents(of: plan.directory.log)) ?? []
            let text = String(decoding: log.suffix(600), as: UTF8.self)
            return [Difference(kind: .refused, text: "\(error); its log: \(text)")]
        }
    }

    /// Adds what the checker itself has written after the start.
    mutating func note(_ commit: Commit, _ end: Int) {
        history.append(commit)
        answers.append((end, commit.revision))
    }

    // MARK: Memory

    /// Whoever knows of keys in memory is told that they are gone, and so is who knows changes that were
    /// not stored yet.
    private func gapDifferences(
        _ newest: Int64,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        let inMemory = recording.newestTold(at: event) {
            !$0.stored.keys.elementsEqual($0.changes.keys)
        }
        var found: [Difference] = []
        if inMemory > 0 { found += try gapDifference(inMemory, Keys.memoryPattern, connection) }
        let late = recording.newestTold(at: event) { !$0.stored.isEmpty && !$0.isStoredFirst }
        if late > newest { found += try gapDifference(late, Keys.latePattern, connection) }
        return found
    }

    private func gapDifference(
        _ told: Int64,
        _ pattern: String,
        _ connection: Connection
    ) throws(Failure) -> [Difference] {
        let answer = try connection.ask("STATE.CHANGES", "SINCE", "\(told)", pattern)
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
        note(Commit(revision: revision, changes: ["k/probe": Array("x".utf8)]), connection.end)
        let told = recording.newestTold(at: event)
        guard seen.epoch == recording.epoch, revision <= told else { return [] }
        return [Difference(kind: .repeated, text: "\(revision), and \(told) was told")]
    }
}
