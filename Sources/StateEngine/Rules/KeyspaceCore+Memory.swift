import Synchronization

/// Keys that a rule keeps in memory, or that storage may have later, beside those that storage
/// keeps at once.
///
/// They take revisions and places in order like all others, and go through the commit thread, which
/// has nothing to do for them at once. A transaction that touches only such keys, and nothing that
/// is in doubt, is *published* early: its writer is answered at once, readers see it, and a commit
/// that fails before it does not undo it. Its events wait their turn.
///
/// If a key moves from storage to memory at the start, storage keeps a delete.
extension KeyspaceCore {
    /// Puts the open transaction's changes into the batch, stored ones first, so that their
    /// ordinals have no holes.
    ///
    /// - Parameter revision: The newest commit that its writer has read from.
    /// - Returns: Whether all its keys are in memory only or may be stored later, and it depends on
    ///   nothing that is in doubt: then nothing undoes it.
    func fillWithSomePublished(havingRead revision: Int64) -> Bool {
        var stored: [(record: Record, older: CommitBatch.Superseded)] = []
        var kept: [Record] = []
        for case let record? in transaction.changes {
            let older = storedVersion(below: record)
            if record.isVolatile, older.revision == 0 {
                kept.append(record)
            } else {
                stored.append((record, older))
            }
        }
        let isFinal =
            transaction.metadata.allSatisfy(isCertain) && !(stored.isEmpty && kept.isEmpty)
            && (stored.isEmpty || !transaction.isStoredAtOnce)
            && revision <= revisions.durable
            && stored.allSatisfy { $0.record.isDeferrable && isCertain($0.record) }
            && kept.allSatisfy(isCertain)
        for (index, change) in stored.enumerated() {
            change.record.ordinal = Int32(index)
            if isFinal { publishEarly(change.record) }
            pending.filling.append(change.record, superseding: change.older)
        }
        for (index, record) in kept.enumerated() {
            record.ordinal = Int32(stored.count + index)
            if isFinal { record.markPublished() }
            pending.filling.append(record, superseding: CommitBatch.Superseded())
        }
        return isFinal
    }

    /// Nothing undoes a change that storage may have later.
    private func publishEarly(_ record: Record) {
        record.markPublished()
        pending.filling.noteDelay(rules?.rule(for: record.key)?.delay ?? 0)
    }

    /// Whether nothing can undo what a change supersedes.
    private func isCertain(_ record: Record) -> Bool {
        guard let older = record.older else { return true }
        return older.isPublished || older.revision <= revisions.durable
    }

    /// Whether storage may have metadata later, and nothing can undo what it supersedes.
    private func isCertain(_ entry: MetadataEntry) -> Bool {
        guard entry.isDeferrable else { return false }
        guard let older = entry.superseded else { return true }
        return older.isPublished || older.revision <= revisions.durable
    }

    /// The stored change that a new version supersedes; for a key in memory, only if storage still
    /// has a value of it.
    private func storedVersion(below record: Record) -> CommitBatch.Superseded {
        guard let older = record.older else { return CommitBatch.Superseded() }
        let isUnstored = record.isVolatile && (older.isVolatile || older.isDeleted)
        return isUnstored
            ? CommitBatch.Superseded() : CommitBatch.Superseded(older, entries.causes)
    }

    /// A version is durable, and its older version still exists: if the key has moved to memory,
    /// keeps its delete as a tombstone.
    func settleMove(_ record: Record) {
        guard record.isVolatile else { return }
        let wasInMemory = record.older.map { $0.isVolatile && !$0.isDeleted } ?? false
        memoryKeys.count += (record.isDeleted ? 0 : 1) - (wasInMemory ? 1 : 0)
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

    /// How many keys have a durable value in storage.
    package var storedKeyCount: Int { entries.durableCount - memoryKeys.count }

    /// How safe a version is that a reply reports.
    package func durability(of record: Record) -> Durability {
        if !isPersistent || record.isVolatile { return .memory }
        // What a cluster has is on stable storage there.
        guard record.isPublished, record.revision > revisions.stored,
            !(mirrored?.holds(record.key) ?? false)
        else { return .synced }
        return .interval
    }

    /// The newest revision whose writer may have its answer although it is not durable yet.
    ///
    /// Equal to the newest durable one if there are no changes that storage may have later.
    package var newestAcknowledged: Int64 {
        memoryKeys.publishEarly ? revisions.provisional : revisions.durable
    }

    /// Whether `revision` will be durable, and is not yet.
    ///
    /// False while the store is reopened, which may take any time, and if its commit has failed.
    package func isBehind(_ revision: Int64) -> Bool {
        admission.refusals.reopening == nil
            && revisions.durable < min(revision, revisions.provisional)
    }

    // MARK: A commit that fails

    /// Takes the published transactions, which nothing undoes, out of batches that will be undone.
    func takePublished(from batches: [CommitBatch?]) -> CommitBatch? {
        guard memoryKeys.publishEarly else { return nil }
        let published = CommitBatch()
        for case let batch? in batches {
            for item in batch.items.indices where batch.isPublished(item) {
                published.append(published: item, of: batch)
            }
        }
        return published.isEmpty ? nil : published
    }

    /// They are committed with the next batch.
    ///
    /// If the outcome of a commit among them is unknown, they wait until it is known.
    func keep(_ published: CommitBatch, untilReopened waits: Bool) {
        pending.byteCount += published.byteCount
        revisions.keep(published.lastRevision)
        (waits ? pending.inDoubt : pending.filling).take(published)
    }

    // MARK: What the history does not have

    /// Whether commits after `revision` that the history does not have may have touched keys of
    /// `patterns`.
    package func hasForgotten(_ patterns: PatternSet, after revision: Int64) -> Bool {
        for keys in memoryKeys.forgotten
        where revision > keys.storedRevision && revision <= keys.lastRevision {
            if patterns.patterns.contains(where: { keys.pattern.mayMeet($0) }) { return true }
        }
        guard memoryKeys.areUsed, revision < memoryKeys.lastRevision else { return false }
        return patterns.patterns.contains { pattern in
            memoryKeys.patterns.contains { $0.mayMeet(pattern) }
        }
    }
}

extension LocalKeyspace {
    /// Revisions continue above `reservation`'s floor and stay below its limit, because some are
    /// not stored.
    ///
    /// - Parameter reservation: Already raised by the caller, who may wait for the disk, to a block
    ///   above `revisions.newest`.
    package func bound(by reservation: RevisionReservation) {
        // Order matters: the thread that is asked to raise it must have it.
        queue.bound(by: reservation)
        withCore { core in
            core.revisions.reserve(in: reservation)
            core.revisions.skip(
                to: reservation.floor + 1,
                isDecided: core.admission.refusals.reopening == nil
            )
        }
    }

    /// The newest revision that a transaction took, committed or not.
    package var newestRevision: Int64 { withCore { $0.revisions.newest } }

    /// The next revision is above this one.
    package func skip(to revision: Int64) { withCore { $0.revisions.skip(to: revision) } }

    /// Whether storage has all that the last process published and was to store later.
    package var hasAllDeferred: Bool { queue.capabilities.deferrals?.hasAllDeferred ?? false }

    /// Whether what storage refused until the keyspace was closed is kept all the same, where the next
    /// process finds it.
    package var keepsRest: Bool { queue.published.isRestKept.load(ordering: .relaxed) }

    /// Whether ``keepPublished()`` has anything to do.
    package var hasUnkept: Bool {
        let added = queue.addedRevision
        return added > 0 && withCore { added > max($0.revisions.durable, $0.revisions.kept) }
    }

    /// Keeps what was published until storage has it, so that the end of the process does not lose it.
    ///
    /// Called before a reply shows it. If that would take long, the commit thread does it; replies wait for
    /// that, also if storage is far behind, but not if the store cannot be opened.
    ///
    /// - Returns: The last revision of what was to be kept.
    @discardableResult
    package func keepPublished() -> Int64 {
        let revision = queue.addedRevision
        let isKept = queue.keepPublished()
        if isKept && queue.isNearlyStored || queue.cannotOpen {
            if !isKept { queue.noteShownOnly() }
            withCore { $0.revisions.markKept(revision) }
        }
        return revision
    }

    /// Prepares, before clients are served, for what storage may have later.
    package func prepareToDefer() { queue.capabilities.deferrals?.prepareToDefer() }

    /// Sets the keys that earlier processes kept in memory: a watch that resumes from one of their
    /// revisions may have received values that are gone.
    package func forget(_ keys: [ForgottenKeys]) { withCore { $0.memoryKeys.forgotten = keys } }

    /// Installs the rules of the start; waits until the keys that move because of them are on
    /// stable storage.
    ///
    /// - Returns: How many keys have moved.
    /// - Throws: as ``KeyspaceCore/install(rules:cause:at:)``; or the error of the commit, with the
    ///   keys in their former locations.
    @discardableResult
    package func install(rules: KeyRules) throws(StateError) -> Int {
        try durably { (core) throws(StateError) in
            let cause = core.retainCause(.thisProcess)
            defer { core.release(cause) }
            return try core.install(rules: rules, cause: cause, at: LocalKeyspace.now())
        }
    }
}
