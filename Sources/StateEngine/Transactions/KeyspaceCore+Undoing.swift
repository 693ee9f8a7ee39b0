/// Changes that come to nothing.
extension KeyspaceCore {
    /// Ends the transaction without any effect.
    ///
    /// - Parameter keepsRates: Whether its writes count against the rates of their writers: it will
    ///   be made somewhere else.
    package func rollBack(keepsRates: Bool = false) {
        for case let record? in transaction.changes.reversed() { undo(record) }
        if !transaction.metadata.isEmpty { metadata.undo(transaction.metadata) }
        if !keepsRates { for (rate, uid) in transaction.rates { rate.giveBack(uid) } }
        transaction.end()
    }

    /// A batch was not committed: undoes it, newest change first, except changes that were
    /// published already (``takePublished(from:)``).
    ///
    /// Everything finished after it must have been undone before, because it was computed on it.
    func undo(_ batch: CommitBatch) {
        for record in batch.changes.reversed() where !record.isPublished { undo(record) }
        if !batch.contents.metadata.isEmpty { metadata.undo(batch.contents.metadata) }
        pending.byteCount -= batch.byteCount
        pending.fileSteps -= batch.fileSteps
        revisions.undo()
    }

    /// Removes the newest version of a key.
    func undo(_ record: Record) {
        entries.noteChanged(record)
        if admission.countsUsage { count(record, superseding: record.older, by: -1) }
        entries.removeDeadline(of: record)
        // If storage refuses, expired entries are not retried at once.
        if let older = record.older {
            entries.deadlines.insert(older, notBefore: entries.clock() + 1_000)
        }
        if let older = entries.pop(record, durableRevision: revisions.durable) {
            entries.free(older)
        }
        entries.free(record)
    }
}
