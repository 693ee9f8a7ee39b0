import StateModel
import StateSystem
import Synchronization

extension WatchedKeys {
    /// Takes an event of one of the daemon's watches.
    ///
    /// - Returns: Whether that watch has done its work.
    func take(_ event: Client.Event, from wire: WireWatch) throws(StateError) -> Bool {
        switch event {
        case .commit(_, let number, let changes):
            guard wire === main, !isStale, isNews(wire.revision(number)) else { break }
            deliveredRevision = wire.revision(number)
            deliverCommit(wire.revision(number), try changes.map(Self.change))
            noteResumed(by: wire)
            releaseHeld(upTo: number)
        case .gap: wire.beginPieces()
        case .piece(_, let changes):
            for change in changes { wire.add(try Self.change(change)) }
        case .synced(_, let number):
            let state = wire.endPieces()
            guard wire === main || wire === snapshot else { break }
            deliverState(wire.revision(number), wire.patterns, state)
            if wire === main || heals {
                noteCurrent(at: wire.revision(number))
            } else {
                noteAhead(wire.patterns, at: wire.revision(number))
            }
            guard wire === snapshot else { break }
            snapshot = nil
            return true
        case .progress(_, let number):
            guard wire === main, !isStale else { break }
            if isNews(wire.revision(number)) { deliveredRevision = wire.revision(number) }
            noteResumed(by: wire)
            releaseHeld(upTo: number)
        case .away, .current: break
        }
        return false
    }

    // MARK: Catching up

    /// Whether a revision was not covered by a delivered state: a state of all keys may overtake a
    /// watch that replays history.
    private func isNews(_ revision: Revision) -> Bool {
        deliveredRevision.map { $0.epoch != revision.epoch || $0.number < revision.number } ?? true
    }

    /// The same for the state of some patterns, if `main` has delivered only older revisions.
    private func noteAhead(_ patterns: [Pattern], at revision: Revision) {
        guard isNews(revision) else { return }
        followed.withLock { followed in
            for pattern in patterns where followed.settled.contains(pattern) {
                followed.ahead[pattern] = revision.number
            }
        }
    }

    // MARK: Held answers

    /// Whether the watch follows one of `keys`, which the commit of `revision` changed, and has not
    /// delivered that commit.
    func misses(_ keys: [Key], at revision: Revision) -> Bool {
        guard isNews(revision), main != nil, !isCancelled.load(ordering: .relaxed) else {
            return false
        }
        return followed.withLock { followed in
            keys.contains { key in
                key.bytes.withUnsafeBytes { key in
                    followed.settled.contains { $0.matches(key) }
                }
            }
        }
    }

    /// Whether the watch replays history, and delivers present commits later.
    var isCatchingUp: Bool { isStale || main?.isBusy ?? false }

    /// Holds an answer until the watch has delivered the commit, or no longer follows the changed
    /// keys.
    ///
    /// May call its body earlier; the body then checks again.
    ///
    /// - Complexity: O(1).
    func hold(_ answer: HeldAnswer) { held.append(answer) }

    /// Fails the answers whose time is over: a daemon can answer and still not deliver.
    ///
    /// - Returns: The earliest deadline of the others.
    func expireHeld() -> Deadline? {
        for answer in held.take(where: { $0.deadline.hasPassed }) { answer.expire() }
        var earliest: Deadline?
        held.update { earliest = min(earliest ?? $0.deadline, $0.deadline) }
        return earliest
    }

    /// The daemon has started one of its watches.
    func noteBegun(_ wire: WireWatch, at current: Revision) {
        if wire === main, deliveredRevision == current { noteResumed(by: wire) }
    }

    /// Checks whether a watch that resumed after the loss of a connection has reached the present.
    private func noteResumed(by wire: WireWatch) {
        guard let deliveredRevision, wire.noteDelivered(deliveredRevision.number) else { return }
        followed.withLock { $0.isReportedAway = false }
        deliver(.resumed(deliveredRevision))
        releaseHeld()
    }

    /// Everything settled has been delivered as it is at this revision.
    private func noteCurrent(at revision: Revision) {
        deliveredRevision = revision
        isStale = false
        heals = false
        followed.withLock { $0.ahead = [:] }
        releaseHeld()
    }

    /// Releases all held answers.
    func releaseHeld() { for answer in held.take(where: { _ in true }) { answer.body() } }

    /// Releases the answers for commits up to this one.
    ///
    /// Answers come in the order of their commits, except for a few, which then wait longer.
    private func releaseHeld(upTo revision: Int64) {
        while let first = held.first, first.revision <= revision { held.popFirst()?.body() }
    }

    private static func change(_ change: Client.Change) throws(StateError) -> KeyspaceChange {
        KeyspaceChange(
            key: try Key(bytes: change.key),
            value: change.value,
            revision: change.value == nil ? 0 : change.revision,
            cause: change.cause
        )
    }

    private func deliverCommit(_ revision: Revision, _ changes: [KeyspaceChange]) {
        let (filter, ahead) = followed.withLock { followed in
            if !followed.ahead.isEmpty {
                followed.ahead = followed.ahead.filter { $0.value >= revision.number }
            }
            let ahead = Array(followed.ahead.keys)
            if let filter = followed.filter { return (filter, ahead) }
            let isWhole = main?.patterns.allSatisfy { followed.settled.contains($0) } ?? false
            let filter = isWhole ? Filter.all : .some(PatternSet(Array(followed.settled)))
            followed.filter = filter
            return (filter, ahead)
        }
        var kept = changes
        if case .some(let set) = filter { kept.removeAll { !set.matches($0.key) } }
        if !ahead.isEmpty {
            let set = PatternSet(ahead)
            kept.removeAll { set.matches($0.key) }
        }
        guard let first = kept.first else { return }
        deliver(.commit(revision, kept, cause: first.cause ?? .unknown))
    }

    private func deliverState(
        _ revision: Revision,
        _ patterns: [Pattern],
        _ state: some Sequence<KeyspaceChange>
    ) {
        let delivered = followed.withLock { followed in
            let delivered = patterns.filter { followed.counts[$0] != nil }
            followed.settled.formUnion(delivered)
            followed.filter = nil
            followed.isReportedAway = false
            return delivered
        }
        guard !delivered.isEmpty else { return }
        var changes = Array(state)
        if delivered.count < patterns.count {
            let set = PatternSet(delivered)
            changes.removeAll { !set.matches($0.key) }
        }
        deliver(.state(revision, patterns: delivered, changes))
    }

    /// Reports once that the daemon is unavailable; and again if something was requested since.
    func reportAway(_ error: StateError) {
        let isNews = followed.withLock { followed in
            let isNews = !followed.isReportedAway || !followed.asked.isEmpty
            followed.isReportedAway = true
            followed.owed.formUnion(followed.asked)
            followed.asked = []
            return isNews
        }
        if isNews { deliver(.away(error)) }
    }

    /// Reports which patterns exceeded the limit.
    func reportRefusals() {
        let refusals = followed.withLock { followed in
            defer { followed.refusals = [] }
            return followed.refusals
        }
        for (patterns, error) in refusals { deliver(.refused(patterns: patterns, error)) }
    }

    func deliver(_ event: KeyspaceEvent) {
        if !isCancelled.load(ordering: .relaxed) { receive(event) }
    }
}

extension PatternSet {
    fileprivate func matches(_ key: Key) -> Bool { key.bytes.withUnsafeBytes { matches($0) } }
}
