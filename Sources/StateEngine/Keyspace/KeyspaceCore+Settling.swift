import CLinux

extension KeyspaceCore {
    /// A batch is on stable storage: publishes it to watchers, then makes its changes durable.
    func settle(_ batch: CommitBatch) {
        // Order matters: superseded versions still exist while watchers receive the changes.
        hub.publish(batch, in: self)
        let changes = batch.changes
        for (index, record) in changes.enumerated() {
            // A superseded version was last used long ago: waiting for it took 10 % of a SET in the
            // loop (perf).
            if index + 4 < changes.count, let soon = changes[index + 4].older {
                clinux_prefetch(soon.address)
            }
            if memoryKeys.areUsed { settleMove(record) }
            let older = record.older
            let wasLive = older.map { !$0.isDeleted } ?? false
            if let older {
                record.older = nil
                entries.free(older)
            }
            if record.isDeleted {
                if wasLive { entries.durableCount -= 1 }
                if entries.settleDelete(record) { entries.free(record) }
            } else if !wasLive {
                entries.durableCount += 1
            }
        }
        revisions.markDurable(batch.lastRevision)
        if let revision = batch.lastChangeRevision { revisions.noteChange(revision) }
        pending.byteCount -= batch.byteCount
    }

    /// A batch was not committed: undoes it, newest change first, except changes that were
    /// published already (``takePublished(from:)``).
    ///
    /// Everything finished after it must have been undone before, because it was computed on it.
    func undo(_ batch: CommitBatch) {
        for record in batch.changes.reversed() where !record.isPublished { undo(record) }
        if !batch.metadata.isEmpty { metadata.undo(batch.metadata) }
        pending.byteCount -= batch.byteCount
        revisions.undo()
    }

    /// Loads an entry from storage, before anybody else sees the core.
    ///
    /// - Returns: The place of the change that it supersedes, if that was loaded before, and the
    ///   bytes of its value.
    /// - Complexity: O(*n*) in the bytes of key and value.
    func load(_ change: borrowing StoredChange) -> (place: HistoryPlace, byteCount: Int)? {
        let cause = entries.causes.intern(bytes: change.cause)
        let record = Record.make(
            Record.Fields(change, cause: cause.number),
            key: change.key,
            value: change.value,
            in: &entries.pool
        )
        revisions.noteChange(change.revision)
        entries.hasLoadedExpiry = entries.hasLoadedExpiry || record.expires != nil
        let superseded = entries.load(record)
        let found = superseded.map { record in
            (
                HistoryPlace(revision: record.revision, ordinal: record.ordinal),
                record.value?.count ?? 0
            )
        }
        if let superseded { entries.free(superseded) }
        if record.isDeleted, !entries.keepsDeleted { entries.free(record) }
        return found
    }

    /// Everything was loaded from storage.
    func finishLoading(_ store: LoadedStore) {
        self.store.epoch = store.epoch
        revisions.load(store.revision, compacted: store.compacted)
        metadata.load(store.metadata, at: store.revision)
        entries.durableCount = entries.live.count
        guard entries.hasLoadedExpiry else { return }
        let (now, wallTime) = (entries.clock(), LocalKeyspace.now())
        entries.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { record in
            entries.deadlines.insert(record, at: now, wallTime: wallTime)
            return true
        }
    }
}
