/// Answers of the storage after which something is undone or adopted.
extension LocalKeyspace {
    func settleFailure(
        of batch: CommitBatch,
        _ error: StateError,
        in core: KeyspaceCore
    ) -> Outcome {
        // Without transactions, it was to store what is published already.
        let first = batch.isEmpty ? core.revisions.durable + 1 : batch.firstRevision
        if error.isOutcomeUnknown { core.refuseWrites(after: error) }
        undoAll(batch, in: core, isInDoubt: error.isOutcomeUnknown)
        core.pending.fail(from: first, error)
        queue.recycle(batch)
        if !core.pending.filling.isEmpty {
            queue.submit(core.pending.filling, commitsOnCaller: false)
        }
        return .failed(from: first, error)
    }

    func settleReopening(
        _ changes: [AdoptedChange],
        _ metadata: [String: String?],
        in core: KeyspaceCore
    ) -> Outcome {
        // After a failed piece of compaction nothing was in doubt, and there may be provisional
        // versions.
        let (count, unstored) = core.adopt(changes)
        if let unstored { queue.putFirst(unstored) }
        queue.resume()
        core.pending.release(through: core.revisions.durable)
        if !core.metadata.isNewer(than: core.revisions.durable) {
            core.metadata.adopt(
                metadata,
                at: core.revisions.durable,
                keepingPublishedAfter: core.revisions.stored
            )
        }
        core.admission.refusals.reopening = nil
        return .reopened(adopted: count, through: changes.last?.revision ?? 0)
    }

    /// Undoes what was queued while a piece of compaction failed: it has not reached storage, and
    /// its writers need not wait until the store is open again.
    ///
    /// - Returns: Nil if there is nothing to undo.
    func failQueued(in core: KeyspaceCore) -> Outcome? {
        let first = queue.firstUndoneRevision ?? core.pending.filling.firstUndoneRevision
        guard let first, let refusal = core.admission.refusals.reopening else {
            queue.resume()
            return nil
        }
        undoAll(nil, in: core, isInDoubt: true)
        core.pending.fail(from: first, refusal)
        return .failed(from: first, refusal)
    }

    /// Undoes a failed batch and everything computed on it, newest first.
    private func undoAll(
        _ batch: CommitBatch?,
        in core: KeyspaceCore,
        isInDoubt: Bool = false
    ) {
        let queued = queue.takeQueued()
        let published = core.takePublished(from: [batch, queued, core.pending.filling])
        core.undo(core.pending.filling)
        core.pending.filling.removeAll()
        if let queued {
            core.undo(queued)
            queue.recycle(queued)
        }
        if let batch { core.undo(batch) }
        if let published {
            queue.addPublished(of: published)
            core.keep(published, untilReopened: isInDoubt)
        }
        queue.resume()
    }

    /// Adopts changes that others made to the store, below what is provisional.
    ///
    /// Requests of callers are repeated on top of it. A transaction that was not submitted as
    /// mutations is undone, and the outcome reports it.
    func settleEdits(
        _ changes: [OutsideChange],
        interrupting batch: CommitBatch?,
        in core: KeyspaceCore
    ) -> Outcome {
        let changes = core.differing(changes)
        guard batch != nil || !changes.isEmpty else {
            queue.resume()
            return .unchanged
        }
        let durable = core.revisions.durable
        let isUndoing = core.revisions.provisional > durable
        // Order matters: provisional changes were computed without them.
        undoAll(batch, in: core)
        core.adopt(outside: changes)
        if let batch { queue.recycle(batch) }
        core.repeatUndone(at: LocalKeyspace.now())
        if !core.pending.filling.isEmpty {
            queue.submit(core.pending.filling, commitsOnCaller: false)
        }
        guard isUndoing else { return .durable(through: core.revisions.durable) }
        return .failed(
            from: durable + 1,
            StateError(.conflict, "others changed the store meanwhile: nothing was committed")
        )
    }

    /// The queue has stopped, and storage will not have what is in doubt.
    func settleInDoubt(_ core: KeyspaceCore) {
        guard let unstored = core.adopt([]).unstored else { return }
        queue.noteLost(unstored)
        unstored.isDeferred = true
        core.settle(unstored)
    }

    /// The queue has stopped: what is published and still waits for it, storage will not have.
    func settleAtTheEnd(_ core: KeyspaceCore) {
        settleInDoubt(core)
        let waiting = [queue.takeQueued(), core.pending.filling]
        if let published = core.takePublished(from: waiting) { queue.noteLost(published) }
    }
}
