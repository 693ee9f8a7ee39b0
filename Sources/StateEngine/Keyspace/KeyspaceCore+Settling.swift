import CLinux

extension KeyspaceCore {
    /// A batch is on stable storage: watchers are told, then its changes count as durable.
    func settle(_ batch: CommitBatch) {
        // Order matters: what a change supersedes is still there while watchers are told of it.
        hub.publish(batch, in: self)
        let changes = batch.changes
        for (index, record) in changes.enumerated() {
            // What is superseded was last looked at long ago: waiting for it was 10 % of a SET in the loop (perf).
            if index + 4 < changes.count, let soon = changes[index + 4].older {
                clinux_prefetch(soon.address)
            }
            if keepsSomeInMemory { settleMove(record) }
            let older = record.older
            let wasLive = older.map { !$0.isDeleted } ?? false
            if let older {
                record.older = nil
                free(older)
            }
            if record.isDeleted {
                if wasLive { durableKeyCount -= 1 }
                if table.settleDelete(record) { free(record) }
            } else if !wasLive {
                durableKeyCount += 1
            }
        }
        durableRevision = max(durableRevision, batch.lastRevision)
        if let lastMove, lastMove.revision <= durableRevision { self.lastMove = nil }
        if let revision = batch.lastChangeRevision { lastChangeRevision = revision }
        uncommittedByteCount -= batch.byteCount
    }

    /// A batch was not committed: it is undone, newest change first, but for what is told already (``takeTold(from:)``).
    ///
    /// Whatever was finished after it must have been undone before, for it was computed on it.
    func undo(_ batch: CommitBatch) {
        for record in batch.changes.reversed() where !record.isTold { undo(record) }
        if !batch.notes.isEmpty { undo(batch.notes) }
        uncommittedByteCount -= batch.byteCount
        provisionalRevision = durableRevision
    }

    /// Takes an entry over from storage, before anybody else sees the core.
    ///
    /// - Complexity: O(*n*) in the bytes of key and value.
    func load(_ change: borrowing StoredChange) {
        let cause = causes.intern(bytes: change.cause)
        let record = Record.make(
            Record.Fields(change, cause: cause.number),
            key: change.key,
            value: change.value,
            in: &pool
        )
        lastChangeRevision = change.revision
        hasLoadedExpiry = hasLoadedExpiry || record.expires != nil
        if let superseded = table.load(record) { free(superseded) }
        if record.isDeleted, !table.keepsDeleted { free(record) }
    }

    /// What storage holds was taken over.
    func finishLoading(_ store: LoadedStore) {
        epoch = store.epoch
        newestRevision = store.revision
        provisionalRevision = store.revision
        durableRevision = store.revision
        compactedRevision = store.compacted
        durableKeyCount = table.live.count
        guard hasLoadedExpiry else { return }
        let (now, wallTime) = (clock(), LocalKeyspace.now())
        table.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { record in
            deadlines.insert(record, at: now, wallTime: wallTime)
            return true
        }
    }

    /// Keeps an answer until what it stands on is durable or undone.
    ///
    /// A refusal may stand on an earlier commit than the answers before it: it waits among those of its revision.
    ///
    /// - Complexity: O(*m*) in the answers of later revisions.
    func hold(_ answer: Answer) {
        var place = waiters.count
        while place > 0, waiters[place - 1].revision > answer.revision { place -= 1 }
        waiters.insert(answer, at: place)
    }

    /// Hands the answers out that no longer have to wait.
    func deliverWaiters() {
        guard let first = waiters.first, first.revision <= durableRevision else { return }
        let end = waiters.firstIndex { $0.revision > durableRevision } ?? waiters.count
        for answer in waiters[..<end] { deliveries.append(.answer(answer)) }
        waiters.removeFirst(end)
    }

    /// Hands the answers out that stand on a failed commit, all with its error.
    func deliverWaiters(failedFrom revision: Int64, _ error: StateError) {
        let start = waiters.firstIndex { $0.revision >= revision } ?? waiters.count
        for var answer in waiters[start...] {
            answer.result = .failure(error)
            deliveries.append(.answer(answer))
        }
        waiters.removeSubrange(start...)
    }
}
