import StateModel
import StateSystem
import Synchronization

extension WatchedKeys {
    /// Takes what one of the daemon's watches tells.
    ///
    /// - Returns: Whether that watch has done its work.
    func take(_ event: Client.Event, from wire: WireWatch) throws(StateError) -> Bool {
        switch event {
        case .commit(_, let number, let changes):
            guard wire === main, !isStale, isNews(wire.revision(number)) else { break }
            told = wire.revision(number)
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
            if isNews(wire.revision(number)) { told = wire.revision(number) }
            noteResumed(by: wire)
            releaseHeld(upTo: number)
        }
        return false
    }

    // MARK: What main has still to catch up with

    /// Whether it was not told as a state already: that of all keys may overtake a watch that is fed from the history.
    private func isNews(_ revision: Revision) -> Bool {
        told.map { $0.epoch != revision.epoch || $0.number < revision.number } ?? true
    }

    /// The same of the state of some patterns: main has told all up to an older revision, or has nothing to tell.
    private func noteAhead(_ patterns: [Pattern], at revision: Revision) {
        guard isNews(revision) else { return }
        followed.withLock { followed in
            for pattern in patterns where followed.settled.contains(pattern) {
                followed.ahead[pattern] = revision.number
            }
        }
    }

    // MARK: Answers that wait

    /// Whether it follows one of `keys`, which the commit of `revision` changed, and has not told of that commit.
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

    /// Whether it tells what was, and commits of now later.
    var isCatchingUp: Bool { isStale || main?.isBusy ?? false }

    /// Calls the answer's body when it has told of the commit, or does not follow what that changed any more; or before, and then
    /// is asked again.
    ///
    /// - Complexity: O(1).
    func hold(_ answer: HeldAnswer) { held.append(answer) }

    /// Gives up the answers whose time is over: a daemon that answers need not go on to deliver.
    ///
    /// - Returns: The earliest deadline of the others.
    func expireHeld() -> Deadline? {
        for answer in held.take(where: { $0.deadline.hasPassed }) { answer.expire() }
        var earliest: Deadline?
        held.update { earliest = min(earliest ?? $0.deadline, $0.deadline) }
        return earliest
    }

    /// The daemon has begun one of its watches.
    func noteBegun(_ wire: WireWatch, at current: Revision) {
        if wire === main, told == current { noteResumed(by: wire) }
    }

    /// Looks whether a watch that goes on after the loss of a connection has come to the present.
    private func noteResumed(by wire: WireWatch) {
        guard let told, wire.noteDelivered(told.number) else { return }
        followed.withLock { $0.isReportedAway = false }
        tell(.resumed(told))
        releaseHeld()
    }

    /// All that is settled has been told as it is at this revision.
    private func noteCurrent(at revision: Revision) {
        told = revision
        isStale = false
        heals = false
        followed.withLock { $0.ahead = [:] }
        releaseHeld()
    }

    /// Everything that this watch may not miss any more.
    func releaseHeld() { for answer in held.take(where: { _ in true }) { answer.body() } }

    /// What waits for commits up to this one.
    ///
    /// Answers come in the order of their commits, but for a few that then wait longer.
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
        tell(.commit(revision, kept, cause: first.cause ?? .unknown))
    }

    private func deliverState(
        _ revision: Revision,
        _ patterns: [Pattern],
        _ state: some Sequence<KeyspaceChange>
    ) {
        let told = followed.withLock { followed in
            let told = patterns.filter { followed.counts[$0] != nil }
            followed.settled.formUnion(told)
            followed.filter = nil
            followed.isReportedAway = false
            return told
        }
        guard !told.isEmpty else { return }
        var changes = Array(state)
        if told.count < patterns.count {
            let set = PatternSet(told)
            changes.removeAll { !set.matches($0.key) }
        }
        tell(.state(revision, patterns: told, changes))
    }

    /// Tells, once, that nothing is heard of the daemon; and again who has asked for something since.
    func reportAway(_ error: StateError) {
        let isNews = followed.withLock { followed in
            let isNews = !followed.isReportedAway || !followed.asked.isEmpty
            followed.isReportedAway = true
            followed.owed.formUnion(followed.asked)
            followed.asked = []
            return isNews
        }
        if isNews { tell(.away(error)) }
    }

    /// Tells which patterns were too many.
    func reportRefusals() {
        let refusals = followed.withLock { followed in
            defer { followed.refusals = [] }
            return followed.refusals
        }
        for (patterns, error) in refusals { tell(.refused(patterns: patterns, error)) }
    }

    func tell(_ event: KeyspaceEvent) {
        if !isCancelled.load(ordering: .relaxed) { receive(event) }
    }
}

extension PatternSet {
    fileprivate func matches(_ key: Key) -> Bool { key.bytes.withUnsafeBytes { matches($0) } }
}
