import CCrashRecorder
import Glibc

/// What the checker is asked for.
struct Plan {
    var program = ""
    var seed: UInt64 = 1
    /// States of one recording.
    var states = 24
    /// Of which files syncs do nothing; all of them if empty.
    var ignored: String?
    var directory = StateDirectory(path: "")
    /// Where states with differences are put; nil keeps none.
    var kept: String?
}

/// Records one workload and checks states of it.
struct Checker {
    private(set) var plan: Plan
    let number: Int
    let kind: Workload.Kind
    private var random: Random
    private var recording = Recording()
    private(set) var findings = Findings()

    init(_ plan: Plan, recording number: Int) {
        self.plan = plan
        self.number = number
        random = Random(seed: plan.seed &* 1_000_003 &+ UInt64(number))
        kind = Workload.Kind.allCases[number % Workload.Kind.allCases.count]
    }

    mutating func run() throws(Failure) -> Findings {
        Files.remove(plan.directory.path)
        try plan.directory.make(isEmpty: number / 10 % 5 == 4)
        var recorder = Recorder(
            Workload(kind, &random),
            program: plan.program,
            in: plan.directory,
            Random(seed: random.next())
        )
        recording = try recorder.run()
        findings.recordingCount = 1
        findings.eventCount = recording.trace.events.count
        findings.commitCount = recording.history.commits.count
        for order in FileSystem.Order.allCases { try check(order, count: plan.states / 2) }
        return findings
    }

    /// Where crashes tell most: around syncs, changes of names, and what was sent.
    private func points(_ count: Int, in trace: Trace, _ random: inout Random) -> [Int] {
        let isTelling = { (event: Trace.Event) in
            switch event.kind {
            case RECORDER_SYNC, RECORDER_SYNC_ALL, RECORDER_RENAME, RECORDER_UNLINK, RECORDER_SEND,
                RECORDER_TRUNCATE, RECORDER_SET_ATTRIBUTE, RECORDER_REMOVE_ATTRIBUTE:
                true
            default: false
            }
        }
        let telling = trace.events.indices.filter { isTelling(trace.events[$0]) }
        let changing = trace.events.indices.filter {
            let event = trace.events[$0]
            return event.kind == RECORDER_WRITE && event.record.is_zero == 0
        }
        var points: [Int] = []
        for _ in 0..<count {
            let places = random.chance(0.5) || changing.isEmpty ? telling : changing
            points.append(places.isEmpty ? 0 : random.one(of: places) + random.below(2))
        }
        return points.sorted()
    }

    private mutating func check(_ order: FileSystem.Order, count: Int) throws(Failure) {
        var system = plan.directory.fileSystem(order: order, ignored: plan.ignored)
        var points = points(count, in: recording.trace, &random)[...]
        var lives = recording.trace.lives.map(\.first)[...]
        for (number, event) in recording.trace.events.enumerated() {
            while points.first == number {
                points.removeFirst()
                try check(system, at: number)
            }
            if lives.first == number {
                lives.removeFirst()
                system.beginLife()
            }
            try system.apply(event, number: number)
        }
        for _ in points { try check(system, at: recording.trace.events.count) }
    }

    /// Builds one state, starts the daemon on it, and compares.
    private mutating func check(_ system: FileSystem, at event: Int) throws(Failure) {
        let kind = CrashKind.random(&random)
        let image = system.image(kind, &random)
        var life = recording.life(of: max(0, event - 1))
        if life + 1 < recording.configurations.count, random.chance(0.2) { life += 1 }
        var state = State(
            recording: recording,
            plan: plan,
            event: event,
            life: life,
            image: image,
            description:
                "recording \(number) (\(self.kind.rawValue)), before event \(event) of "
                + "\(recording.trace.events.count), \(system.order.rawValue), \(kind), "
                + "configuration \(life)"
        )
        state.isLate = random.chance(0.7)
        if !state.isLate { state.description += ", started at once" }
        findings.stateCount += 1
        let isTwice = random.chance(0.25)
        state.isRestarted = !isTwice && random.chance(0.2)
        try report(state.check(isRecorded: isTwice), state)
        guard isTwice, let trace = state.trace else { return }
        try checkAgain(&state, trace, system)
    }

    /// Crashes the start in its turn.
    private mutating func checkAgain(
        _ state: inout State,
        _ trace: Trace,
        _ before: FileSystem
    ) throws(Failure) {
        var system = plan.directory.fileSystem(of: state.image, like: before)
        guard let point = points(1, in: trace, &random).first else { return }
        for (number, event) in trace.events.prefix(point).enumerated() {
            try system.apply(event, number: number)
        }
        let kind = CrashKind.random(&random)
        state.image = system.image(kind, &random)
        state.description +=
            ", then before event \(point) of \(trace.events.count) of the start, \(kind)"
        let life = trace.lives.last
        state.served =
            state.answers.last { answer in
                life?.begun(ofByte: answer.end, connection: 0).map { $0 <= point } ?? false
            }?.revision ?? 0
        state.trace = nil
        state.isRestarted = random.chance(0.3)
        if random.chance(0.3) { state.life = random.below(recording.configurations.count) }
        state.description += ", configuration \(state.life)"
        findings.stateCount += 1
        findings.secondCrashCount += 1
        try report(state.check(isRecorded: false), state)
    }

    private mutating func report(_ differences: [Difference], _ state: State) {
        for difference in differences {
            findings.differences.append((difference, state.description))
        }
        guard !differences.isEmpty, let kept = plan.kept else { return }
        let name = "\(kept)/\(number)-\(findings.stateCount)"
        mkdir(kept, 0o700)
        let lines =
            differences.map { "\($0.kind.rawValue): \($0.text)" } + [state.description]
            + state.report
        try? Files.copy(plan.directory.root, to: name)
        try? Files.write(lines.joined(separator: "\n") + "\n", to: "\(name).txt")
    }
}
