/// Keys that a rule keeps in memory, beside those that storage keeps.
///
/// They take revisions and places in the order as all do, and go through the commit thread, which has nothing to do for them. A
/// transaction that touches nothing else, and nothing that is in doubt, is *told*: its writer is answered at once, whoever reads
/// sees it, and a commit that fails before it does not undo it. Its events wait their turn.
///
/// Of a key that moves from storage to memory at the start, storage keeps a delete.
extension KeyspaceCore {
    /// Puts the open transaction's changes into the batch, those that are stored first, so that their ordinals have no holes.
    ///
    /// - Parameter revision: The newest commit that its writer has read of.
    /// - Returns: Whether it touches keys in memory alone and rests on nothing that is in doubt: then nothing undoes it.
    func fillWithSomeInMemory(havingRead revision: Int64) -> Bool {
        var stored: [(record: Record, place: CommitBatch.Place)] = []
        var kept: [Record] = []
        for case let record? in transaction.changes {
            let place = storedPlace(below: record)
            if record.isVolatile, place.revision == 0 {
                kept.append(record)
            } else {
                stored.append((record, place))
            }
        }
        for (index, change) in stored.enumerated() {
            change.record.ordinal = Int32(index)
            pending.filling.append(change.record, superseding: change.place)
        }
        let isFinal =
            stored.isEmpty && transaction.metadata.isEmpty && !kept.isEmpty
            && revision <= revisions.durable
            && isCertain(kept)
        for (index, record) in kept.enumerated() {
            record.ordinal = Int32(stored.count + index)
            pending.filling.append(record, superseding: CommitBatch.Place(revision: 0, ordinal: 0))
            if isFinal { record.markPublished() }
        }
        return isFinal
    }

    /// Whether nothing that the changes supersede can be undone.
    private func isCertain(_ changes: [Record]) -> Bool {
        changes.allSatisfy { record in
            guard let older = record.older else { return true }
            return older.isTold || older.revision <= revisions.durable
        }
    }

    /// The stored change that a new version supersedes; for one in memory, that storage still has as the key's value.
    private func storedPlace(below record: Record) -> CommitBatch.Place {
        let none = CommitBatch.Place(revision: 0, ordinal: 0)
        guard let older = record.older else { return none }
        let isUnstored = record.isVolatile && (older.isVolatile || older.isDeleted)
        return isUnstored ? none : older.batchPlace
    }

    /// A version is durable, of which the one below is still there: if the key has moved to memory, its delete is kept.
    func settleMove(_ record: Record) {
        guard record.isVolatile else { return }
        memoryKeys.lastRevision = max(memoryKeys.lastRevision, record.revision)
        guard let older = record.older, !older.isVolatile else { return }
        entries.causes.retain(entries.causes[record.cause])
        let fields = Record.Fields(
            revision: record.revision,
            created: record.created,
            version: 0,
            time: record.time,
            ordinal: record.ordinal,
            owner: record.owner,
            cause: record.cause
        )
        entries.keepTombstone(Record.make(fields, key: record.key, value: nil, in: &entries.pool))
    }

    // MARK: A commit that fails

    /// Takes the transactions out of batches that are to be undone which nothing undoes.
    func takePublished(from batches: [CommitBatch?]) -> CommitBatch? {
        guard memoryKeys.areUsed else { return nil }
        let told = CommitBatch()
        for case let batch? in batches {
            var index = 0
            for item in batch.items {
                let changes = batch.changes[index..<item.changeEnd]
                index = item.changeEnd
                guard changes.first?.isTold ?? false else { continue }
                told.append(told: changes, of: item)
            }
        }
        return told.isEmpty ? nil : told
    }

    /// They are committed with what comes next; where storage may have what they came between, they wait until that is known.
    func keep(_ told: CommitBatch, untilReopened waits: Bool) {
        pending.byteCount += told.byteCount
        revisions.keep(told.lastRevision)
        (waits ? pending.inDoubt : pending.filling).take(told)
    }

    // MARK: What the history does not have

    /// Whether commits after `revision` that the history does not have may have touched keys of `patterns`.
    package func hasForgotten(_ patterns: PatternSet, after revision: Int64) -> Bool {
        for keys in memoryKeys.forgotten where revision <= keys.lastRevision {
            if patterns.patterns.contains(where: { keys.pattern.mayMeet($0) }) { return true }
        }
        guard memoryKeys.areUsed, revision < memoryKeys.lastRevision else { return false }
        return patterns.patterns.contains { pattern in
            memoryKeys.patterns.contains { $0.mayMeet(pattern) }
        }
    }
}

extension CommitBatch {
    /// Adds a transaction that touches nothing but keys in memory.
    func append(told changes: ArraySlice<Record>, of item: Item) {
        for change in changes { append(change, superseding: Place(revision: 0, ordinal: 0)) }
        let byteCount = changes.reduce(0) { $0 + $1.byteCount }
        endTransaction(revision: item.revision, cause: item.cause, byteCount: byteCount)
    }
}

extension Record {
    fileprivate var batchPlace: CommitBatch.Place {
        CommitBatch.Place(revision: revision, ordinal: ordinal)
    }
}

extension LocalKeyspace {
    /// From now on revisions go on above `reservation`'s floor and stay below it, for some are not stored.
    ///
    /// - Parameter reservation: Raised by the caller, who may wait for the disk, a block above ``revisions.newest``.
    package func bound(by reservation: RevisionReservation) {
        // Order matters: who is asked to raise it has to know it.
        queue.bound(by: reservation)
        withCore { core in
            core.revisions.reserve(in: reservation)
            core.revisions.skip(to: reservation.floor + 1)
        }
    }

    /// The newest revision that a transaction took, committed or not.
    package var newestRevision: Int64 { withCore { $0.revisions.newest } }

    /// The next revision is above this one.
    package func skip(to revision: Int64) { withCore { $0.revisions.skip(to: revision) } }

    /// Former lives kept these keys in memory: who goes on from one of their revisions may have heard of values that are gone.
    package func forget(_ keys: [ForgottenKeys]) { withCore { $0.memoryKeys.forgotten = keys } }

    /// From here on the rules of the start hold; waits until what moves by them is on stable storage.
    ///
    /// - Returns: How many keys have moved.
    /// - Throws: as ``KeyspaceCore/install(rules:cause:at:)``; or the error of the commit, with the keys where they were.
    @discardableResult
    package func install(rules: KeyRules) throws(StateError) -> Int {
        try durably { (core) throws(StateError) in
            let cause = core.retainCause(.thisProcess)
            defer { core.release(cause) }
            return try core.install(rules: rules, cause: cause, at: LocalKeyspace.now())
        }
    }
}
