/// On the way to the present: from the history, or with a snapshot.
extension Watcher {
    /// How near the present has to be for what comes during a read to be kept: most likely it is the last.
    private static let nearCommitCount: Int64 = 20_000

    /// Whether ``advance(in:byteLimit:)`` has something to do, as soon as there is room.
    package var canAdvance: Bool {
        switch phase {
        case .synced: owesLatest
        case .catchingUp: reading == nil
        case .snapshot, .blocked: true
        }
    }

    /// Brings a watcher that is not synced one step nearer: a read of the history, a gap, a piece of about `byteLimit` bytes, or
    /// `synced`.
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

    private func endSnapshot(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        found = nil
        phase = .synced
        if owesLatest {
            latest?.beginRound(at: core.revisions.durable, isPiece: true)
        } else {
            deliverSynced(core.revisions.durable, receiver, in: core)
        }
    }

    /// Hands out values of a round of latest values, which begins where none is under way.
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

    /// What was told is void: the state follows.
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
            // What comes meanwhile is marked.
            reading = Reading(through: present, isKeeping: false, keptRevision: present)
            return receiver.readChangedKeys(after: position, through: present)
        }
        let isNear = present - position <= Watcher.nearCommitCount
        reading = Reading(through: present, isKeeping: isNear, keptRevision: present)
        receiver.read(after: position, through: present)
    }

    /// Takes over that the commits up to `revision` have been read and told.
    ///
    /// - Parameters:
    ///   - revision: Not above what was asked for.
    ///   - told: The last of them that there was anything to tell of; nil for none.
    ///   - core: The keyspace, whose lock is held.
    /// - Returns: Whether what was kept meanwhile is to be told now; where not, it is void.
    package func finishReading(
        through revision: Int64,
        told: Int64?,
        in core: KeyspaceCore
    ) -> Bool {
        guard let reading else { preconditionFailure("a read ends that was not begun") }
        self.reading = nil
        guard phase == .catchingUp else { return false }
        position = revision
        if let told { deliveredRevision = told }
        if revision == reading.through, reading.isKeeping {
            // Order matters: what was kept begins right behind what was read.
            phase = .synced
            if reading.keptRevision > reading.through { deliveredRevision = reading.keptRevision }
            return true
        }
        if revision >= core.revisions.durable { phase = .synced }
        return false
    }

    /// Takes over which keys the commits up to the present have changed: their values make up the first round.
    package func finishReading(
        marks: [[UInt8]: LatestKeys.Mark],
        through revision: Int64,
        in core: KeyspaceCore
    ) {
        reading = nil
        // What came meanwhile was too much to be owed: it is void with what was read.
        guard phase == .catchingUp else { return }
        position = revision
        phase = .synced
        for (key, mark) in marks { latest?.mark(key, mark) }
        checkOwed()
        guard phase == .synced, !owesLatest, let receiver else { return }
        deliverSynced(core.revisions.durable, receiver, in: core)
    }

    /// Takes over that the commits after its position are not to be had: a gap and the state follow.
    package func failReading() {
        reading = nil
        block(at: nil)
    }

    /// Whether what is being read is still to be told.
    package var awaitsReading: Bool { reading != nil && phase == .catchingUp }

    /// A piece of about so many bytes, or of what is among the keys that can be compared meanwhile, for who may see all keys.
    ///
    /// - Returns: It, and the last key that was looked at; nil where nothing was left.
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

    /// Whether it may be told of a version.
    func isShown(_ record: Record, in core: KeyspaceCore) -> Bool {
        core.visibility(of: subject).mayReveal(.watch, about: record)
    }
}

extension KeyspaceCore {
    /// Whether all commits after `revision` that touch `patterns` are there: it is no later than the present, and the history reaches
    /// back to it.
    package func canResume(_ patterns: PatternSet, after revision: Int64) -> Bool {
        if revision == revisions.durable { return true }
        if hasForgotten(patterns, after: revision) { return false }
        return store.hasHistory && revision >= revisions.compacted && revision < revisions.durable
    }
}
