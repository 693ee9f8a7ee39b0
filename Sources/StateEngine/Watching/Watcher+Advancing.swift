/// Brings a watcher to the present: from the history, or with a snapshot.
extension Watcher {
    /// How near the present must be for commits during a read to be kept: most likely it is the
    /// last read.
    private static let nearCommitCount: Int64 = 20_000

    /// Whether ``advance(in:byteLimit:)`` has something to do once there is room.
    package var canAdvance: Bool {
        switch phase {
        case .synced: owesLatest
        case .catchingUp: reading == nil
        case .snapshot, .blocked: true
        }
    }

    /// Advances a watcher that is not synced by one step: a read of the history, a gap, a piece of
    /// about `byteLimit` bytes, or `synced`.
    package func advance(in core: KeyspaceCore, byteLimit: Int) {
        guard let receiver else { return }
        switch phase {
        case .synced: advanceRound(receiver, in: core, byteLimit: byteLimit)
        case .blocked, .catchingUp:
            guard reading == nil else { return }
            guard let position, core.canResume(patterns, after: position) else {
                return beginAgain(receiver, in: core)
            }
            readOn(receiver, after: position, in: core)
        case .snapshot(let passed):
            if found == nil, subject.flatMap(core.visibility) != nil {
                found = FoundKeys(upTo: passed)
            }
            guard found == nil else {
                guard deliverFound(receiver, in: core, byteLimit: byteLimit) else { return }
                return endSnapshot(receiver, in: core)
            }
            let (piece, seen) = nextPiece(after: passed, in: core, byteLimit: byteLimit)
            if !piece.isEmpty { receiver.receive(.piece(piece), in: core) }
            if let seen {
                phase = .snapshot(passed: seen)
                return
            }
            endSnapshot(receiver, in: core)
        }
    }

    /// Goes on with a snapshot of which the keys up to `passed` were delivered by an earlier run of
    /// the daemon; nil: none were.
    ///
    /// The keyspace must be as it was then, or what was delivered is wrong.
    package func continueSnapshot(after passed: [UInt8]?) { phase = .snapshot(passed: passed) }

    private func endSnapshot(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        found = nil
        phase = .synced
        if owesLatest {
            latest?.beginRound(at: core.revisions.durable, isPiece: true)
        } else {
            deliverSynced(core.revisions.durable, receiver, in: core)
        }
    }

    /// Delivers values of a round of latest values; begins a round if there is none.
    private func advanceRound(
        _ receiver: any WatchReceiver,
        in core: KeyspaceCore,
        byteLimit: Int
    ) {
        guard owesLatest else { return }
        if latest?.hasRound == false {
            latest?.beginRound(at: core.revisions.durable, isPiece: false)
        }
        if let values = latest?.takeValues(byteLimit: byteLimit, for: self, in: core),
            !values.values.isEmpty
        {
            receiver.receive(.latest(values), in: core)
        }
        if let revision = latest?.endRound() { deliverSynced(revision, receiver, in: core) }
    }

    private func deliverSynced(
        _ revision: Int64,
        _ receiver: any WatchReceiver,
        in core: KeyspaceCore
    ) {
        deliveredRevision = revision
        receiver.receive(.synced(revision), in: core)
    }

    /// What was delivered is void: the state follows.
    private func beginAgain(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        phase = .snapshot(passed: nil)
        deliveredRevision = core.revisions.durable
        receiver.receive(.gap(core.revisions.durable), in: core)
    }

    private func readOn(
        _ receiver: any WatchReceiver,
        after position: Int64,
        in core: KeyspaceCore
    ) {
        let present = core.revisions.durable
        guard position < present else {
            phase = .synced
            return
        }
        phase = .catchingUp
        guard latest == nil else {
            // Keys that change meanwhile are pending.
            reading = Reading(through: present, isKeeping: false, keptRevision: present)
            return receiver.readChangedKeys(after: position, through: present)
        }
        let isNear = present - position <= Watcher.nearCommitCount
        reading = Reading(through: present, isKeeping: isNear, keptRevision: present)
        receiver.read(after: position, through: present)
    }

    /// The commits up to `revision` have been read and delivered.
    ///
    /// - Parameters:
    ///   - revision: Not above the requested one.
    ///   - delivered: The last of them that had anything to deliver; nil for none.
    ///   - core: The keyspace, whose lock is held.
    /// - Returns: Whether the commits kept meanwhile must be delivered now; if not, they are void.
    package func finishReading(
        through revision: Int64,
        delivered: Int64?,
        in core: KeyspaceCore
    ) -> Bool {
        guard let reading else { preconditionFailure("a read ends that was not begun") }
        self.reading = nil
        guard phase == .catchingUp else { return false }
        position = revision
        if let delivered { deliveredRevision = delivered }
        if revision == reading.through, reading.isKeeping {
            // Order matters: the kept commits begin right after those that were read.
            phase = .synced
            if reading.keptRevision > reading.through { deliveredRevision = reading.keptRevision }
            return true
        }
        if revision >= core.revisions.durable { phase = .synced }
        return false
    }

    /// Takes the keys that the commits up to the present have changed: their values make up the
    /// first round.
    package func finishReading(
        pending: [[UInt8]: LatestKeys.Pending],
        through revision: Int64,
        in core: KeyspaceCore
    ) {
        reading = nil
        // Too much changed meanwhile: it is void, together with what was read.
        guard phase == .catchingUp else { return }
        position = revision
        phase = .synced
        for (key, change) in pending { latest?.add(key, change) }
        checkOwed()
        guard phase == .synced, !owesLatest, let receiver else { return }
        deliverSynced(core.revisions.durable, receiver, in: core)
    }

    /// The commits after its position are not available: a gap and the state follow.
    package func failReading() {
        reading = nil
        block(at: nil)
    }

    /// Whether what is being read must still be delivered.
    package var awaitsReading: Bool { reading != nil && phase == .catchingUp }

    /// The next piece of about `byteLimit` bytes, or less if comparing the keys takes too long, for
    /// a subject that may see all keys.
    ///
    /// - Returns: The piece, and the last key that was read; nil if nothing was left.
    private func nextPiece(
        after passed: [UInt8]?,
        in core: KeyspaceCore,
        byteLimit: Int
    ) -> (piece: [Record], seen: [UInt8]?) {
        var piece: [Record] = []
        var byteCount = 0
        var last: Record?
        func collect(_ bound: Bytes?) -> [UInt8]? {
            core.forEachDurable(patterns, after: bound, comparing: byteLimit) { record in
                last = record
                piece.append(record)
                byteCount += record.byteCount + 32
                return byteCount < byteLimit
            }
        }
        let seen = if let passed { passed.withUnsafeBytes { collect($0) } } else { collect(nil) }
        return (piece, seen ?? last.map { Array($0.key) })
    }

    /// Whether the watcher may see a version.
    func isShown(_ record: Record, in core: KeyspaceCore) -> Bool {
        core.isShown(record, toWatcherOf: subject)
    }
}

extension KeyspaceCore {
    /// Whether a watcher of `subject` may see a version; nil sees everything.
    func isShown(_ record: Record, toWatcherOf subject: Subject?) -> Bool {
        visibility(of: subject).mayReveal(.watch, about: record)
    }

    /// Whether all commits after `revision` that touch `patterns` are available: it is not in the
    /// future, and the history reaches back to it.
    package func canResume(_ patterns: PatternSet, after revision: Int64) -> Bool {
        if revision == revisions.durable { return true }
        if hasForgotten(patterns, after: revision) { return false }
        return store.hasHistory && revision >= revisions.compacted && revision < revisions.durable
    }
}
