import StateTestSupport
import StateWire

/// Watches in session after session, on a thread of its own: connects, reads, stalls, goes away and resumes.
struct RunWatcher {
    /// How long a watcher waits for a commit that it must be told of.
    static let patience: Duration = .seconds(60)

    let number: Int
    let socketPath: String
    let board: RunBoard
    let epoch: String
    let abilities: RunAbilities
    private let patterns: [WatchPattern]
    private var random: SplitMix
    private var sessionCount = 0
    /// Up to here everything was told; 0 before the first bookmark.
    private var position: Int64 = 0

    init(_ number: Int, _ plan: RunPlan, _ store: RunStore, _ board: RunBoard) {
        self.number = number
        self.board = board
        socketPath = store.socketPath
        epoch = store.epoch
        abilities = store.abilities
        patterns = RunPlan.patterns(of: number)
        random = SplitMix(seed: plan.seed &* 1_000 &+ 500 &+ UInt64(number))
    }

    /// Goes on until it has been told of the last commit of all.
    mutating func work() {
        var generation = 1
        do {
            while let (current, last) = wait(for: generation) {
                var session = WatchSession(
                    watcher: number,
                    number: sessionCount,
                    last == nil ? anyRequest() : request(resuming: position),
                    epoch: epoch
                )
                sessionCount += 1
                let isLost = try run(&session, last)
                note(session)
                board.add(session)
                if last != nil, !isLost { return }
                generation = isLost ? current + 1 : current
            }
        } catch {
            board.fail("watcher \(number): \(error)")
        }
    }

    private mutating func run(_ session: inout WatchSession, _ last: Int64?) throws -> Bool {
        guard session.request.isPolled else {
            var run = RunSession(socketPath, board, random.next())
            return try run.run(&session, last)
        }
        var poll = RunPoll(socketPath, board, random.next())
        return try poll.run(&session, last)
    }

    /// The generation of the daemon that runs, and the last revision of all once it is known; nil where the run ends.
    private func wait(for generation: Int) -> (generation: Int, last: Int64?)? {
        let next = board.stage.take(seconds: 120) { stage -> (generation: Int, last: Int64?)? in
            if stage.fault != nil { return (0, nil) }
            return stage.generation >= generation ? (stage.generation, stage.lastRevision) : nil
        }
        if next == nil { board.fail("watcher \(number): no daemon \(generation) in 120 s") }
        return next?.generation == 0 ? nil : next
    }

    /// Remembers the bookmark of a session.
    private mutating func note(_ session: WatchSession) {
        if let reached = session.bookmark { position = reached }
    }

    // MARK: What is asked for

    private mutating func anyRequest() -> WatchSession.Request {
        if abilities.hasChanges, position > 0, random.chance(25) {
            var request = WatchSession.Request(patterns, resumption())
            request.isPolled = true
            return request
        }
        var request = WatchSession.Request(patterns, anyStart())
        request.isLatest = abilities.hasLatest && random.chance(35)
        // What the latest value replaced may never have been told: the two exclude each other.
        request.includesPrevious = !request.isLatest && random.chance(30)
        return request
    }

    private mutating func request(resuming position: Int64) -> WatchSession.Request {
        var request = WatchSession.Request(patterns, .snapshot)
        if abilities.hasFrom, position > 0 { request.start = .from(position, epoch: epoch) }
        request.isLatest = abilities.hasLatest && random.chance(35)
        return request
    }

    private mutating func anyStart() -> WatchSession.Start {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<15: .now
        case ..<30: .snapshot
        default:
            abilities.hasFrom && position > 0 ? resumption() : random.chance(50) ? .now : .snapshot
        }
    }

    /// Mostly from the last bookmark, sometimes from where nobody can, or need.
    private mutating func resumption() -> WatchSession.Start {
        let named = random.chance(70) ? epoch : nil
        let recent = max(0, position - 500)
        return switch Int.random(in: 0..<100, using: &random) {
        case ..<65: .from(position, epoch: named)
        case ..<80: .from(Int64.random(in: recent...position, using: &random), epoch: named)
        case ..<87: .from(Int64.random(in: 0...position, using: &random), epoch: named)
        case ..<94: .from(position + 1_000_000_000, epoch: named)
        default: .from(position, epoch: String(epoch.reversed()))
        }
    }
}

extension WatchSession {
    /// The last revision up to which the watcher knows that it was told everything; nil where it does not.
    var bookmark: Int64? {
        guard let span = SessionSpan.spans(of: self).last, let base = span.base else { return nil }
        // Whether there will be a gap is not known yet.
        if span.isResumed, span.tail.isEmpty { return nil }
        let marks = span.tail.compactMap { event -> Int64? in
            if case .change(let revision, _) = event { return request.isLatest ? nil : revision }
            return event.mark
        }
        return marks.max() ?? base
    }

    /// Whether a commit of this revision, or a later one, must have been told.
    func hasReached(_ revision: Int64) -> Bool {
        guard let event = events.last else { return false }
        switch event {
        case .change(let told, _): return !request.isLatest && told >= revision
        case .synced(let told), .progress(let told): return told >= revision
        case .pieces, .gap: return false
        }
    }
}
