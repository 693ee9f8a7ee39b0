/// A part of a session within which everything told counts: from the reply or a gap up to the next gap.
struct SessionSpan {
    enum Origin {
        /// Begins at the revision of the reply.
        case live(Int64)
        /// Begins after the revision that was asked for.
        case resumed(Int64)
        /// Begins with the state; the revision is that of the reply.
        case snapshot(Int64)
        /// The same, after what was held had been declared void.
        case gap(Int64, compacted: Int64)
    }

    let origin: Origin
    /// The state, as it came.
    private(set) var pieces: [WatchSession.Piece] = []
    /// What closed the state.
    private(set) var synced: Int64?
    /// What came within the state and does not belong there.
    private(set) var early: [WatchSession.Event] = []
    /// What came after the state, or from the beginning where there was none.
    private(set) var tail: [WatchSession.Event] = []

    private var isComplete: Bool {
        switch origin {
        case .live, .resumed: true
        case .snapshot, .gap: synced != nil
        }
    }

    /// Commits above it follow; nil where the state was not closed.
    var base: Int64? {
        switch origin {
        case .live(let revision), .resumed(let revision): revision
        case .snapshot, .gap: synced
        }
    }

    var isResumed: Bool { if case .resumed = origin { true } else { false } }

    /// The commits that were told, as they came.
    var commits: [(revision: Int64, changes: [WatchSession.Change])] {
        (early + tail).compactMap { event in
            if case .change(let revision, let changes) = event { (revision, changes) } else { nil }
        }
    }

    private mutating func take(_ event: WatchSession.Event) {
        guard !isComplete else {
            tail.append(event)
            return
        }
        switch event {
        case .pieces(let pieces): self.pieces += pieces
        case .synced(let revision): synced = revision
        default: early.append(event)
        }
    }

    /// The spans of a session, of which there is one at least; none where it had no reply.
    static func spans(of session: WatchSession) -> [SessionSpan] {
        guard let reply = session.reply else { return [] }
        let origin: Origin =
            switch session.request.start {
            case .now: .live(reply.revision)
            case .snapshot: .snapshot(reply.revision)
            case .from(let revision, _): .resumed(revision)
            }
        var spans = [SessionSpan(origin: origin)]
        for event in session.events {
            if case .gap(let revision, let compacted) = event {
                spans.append(SessionSpan(origin: .gap(revision, compacted: compacted)))
            } else {
                spans[spans.count - 1].take(event)
            }
        }
        return spans
    }

    private init(origin: Origin) { self.origin = origin }
}
