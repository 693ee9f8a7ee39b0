import StateSystem

/// The keyspace in this process: what a program embeds, and what `stated` serves.
///
/// A write is visible at once to readers of provisional versions (the daemon's connections, whose
/// replies are held). It becomes durable, published and readable for everybody else once the commit
/// thread or a waiting writer has put it on stable storage.
public final class LocalKeyspace: WaitableKeyspace {
    /// The outcome of a batch.
    package enum Outcome {
        /// Everything up to this revision is durable now, and was delivered to its watchers.
        case durable(through: Int64)
        /// Everything from this revision on was undone.
        case failed(from: Int64, StateError)
        /// The store is open again after a commit whose outcome is unknown. It held `adopted`
        /// commits beyond those published, up to this revision, and they are published now; the
        /// revision is 0 if there are none.
        case reopened(adopted: Int, through: Int64)
        /// It could not be opened, and will be tried again; writes are refused until then.
        case unopened(StateError)
        /// If not nil, the disk is full and only keys in memory can be set; nil: all keys can.
        case room(shortage: StateError?)
        /// Nothing became durable or was undone: revisions were reserved, history was compacted.
        case unchanged
    }

    @usableFromInline let core: StateLock<KeyspaceCore>
    let queue: CommitQueue
    let backing: any Backing
    /// Whether commits go to storage before they are published.
    package let isPersistent: Bool

    /// Opens the store and reads it.
    ///
    /// It stays open until ``close()``, even if nobody holds the keyspace.
    ///
    /// - Throws: ``StateError`` if the store is locked, corrupt, of a newer format or cannot be
    ///   opened; the store stays unchanged.
    /// - Complexity: O(*n*) in the changes of the history.
    public init(backing: any Backing, limits: Limits = Limits()) throws(StateError) {
        let store = StoreTraits(
            epoch: Epoch(bits: 1),
            isPersistent: backing.isPersistent,
            hasHistory: backing.capabilities.history != nil
        )
        let loaded = KeyspaceCore(store, limits: limits)
        do {
            let compaction = backing.capabilities.compaction
            loaded.finishLoading(
                try backing.load { change in
                    guard let superseded = loaded.load(change) else { return }
                    compaction?.didLoad(
                        superseding: superseded.place,
                        byteCount: superseded.byteCount
                    )
                }
            )
        } catch let error as StateError {
            throw error
        } catch {
            throw StateError(.storage, "\(error)")
        }
        queue = CommitQueue(backing: backing, revision: loaded.revisions.durable)
        let capabilities = queue.capabilities
        loaded.admission.editable = capabilities.editing
        loaded.metadata.isKept = capabilities.keepsMetadata || !backing.isPersistent
        self.backing = backing
        isPersistent = backing.isPersistent
        if let reservation = capabilities.reservation { loaded.revisions.reserve(in: reservation) }
        core = StateLock(loaded)
        // An intended cycle until `close`: the commit thread uses what this object owns.
        queue.setNotify { self.settle { _ in } }
        queue.start()
        capabilities.editing?.watchOutside { [weak queue] in queue?.submit(.look) }
    }

    /// Whether the caller is on the commit thread, which must not call ``close()``.
    package var isOnCommitThread: Bool { queue.isOnItsThread }

    /// Commits what is queued and closes the store.
    ///
    /// Later writes are refused. A completion handler or a receiver must not call it: that ends the
    /// process.
    public func close() {
        checkMayWait()
        let refusal = StateError(.readOnly, "the keyspace is closed")
        withCore { $0.admission.refusals.closure = refusal }
        publish()
        queue.stop()
        closeFiles()
        settle { _ in }
        withCore { _ = $0.adopt([]) }
        settle { _ in }
        queue.setNotify {}
        backing.close()
    }

    /// The history, if the backing keeps one.
    package var history: (any HistoryBacking)? { queue.capabilities.history }

    // MARK: The keyspace's own state

    /// Runs `body` with exclusive access to the state.
    @inlinable
    package func withCore<R, E: Error>(_ body: (KeyspaceCore) throws(E) -> R) throws(E) -> R {
        try core.withLock { (core) throws(E) -> R in try body(core) }
    }

    /// Sets who settles the answers of storage: by default the thread that committed.
    ///
    /// - Parameter wake: Called by the thread that committed whenever there is something to
    ///   ``settle(_:)``. It may only wake another thread, which must hold the keyspace until it is
    ///   closed.
    package func settleElsewhere(_ wake: @escaping @Sendable () -> Void) { queue.setNotify(wake) }

    /// Passes finished transactions to the commit thread; without storage, publishes them.
    ///
    /// - Parameter commitsOnCaller: Whether the caller calls ``commitOnCaller()`` next.
    /// - Returns: Whether there is something to settle already.
    @discardableResult
    package func publish(commitsOnCaller: Bool = false) -> Bool {
        withCore { core in
            guard !core.pending.filling.isEmpty else { return false }
            if core.revisions.takesReservation() { queue.submit(.reserve(at: 0)) }
            if isPersistent {
                queue.submit(core.pending.filling, commitsOnCaller: commitsOnCaller)
                return false
            }
            return true
        }
    }

    /// The same before all requests at hand were read, if the commit thread is idle and there is
    /// enough for a sync.
    package func publishEarly() {
        guard isPersistent, queue.isIdle else { return }
        withCore { core in
            if core.pending.filling.transactionCount >= 64 {
                queue.submit(core.pending.filling, commitsOnCaller: false)
            }
        }
    }

    /// Commits what waits for storage on this thread, if the commit thread is idle.
    package func commitOnCaller() { queue.commitHere() }

    /// Settles the answers of storage: watchers are served first, then `report` is called, then
    /// deliveries are made.
    ///
    /// - Parameter report: Called under the keyspace's lock.
    package func settle(_ report: (Outcome) -> Void) {
        let delivers = withCore { core in
            for finished in queue.takeFinished() { report(settle(finished, in: core)) }
            if !isPersistent, !core.pending.filling.isEmpty {
                core.settle(core.pending.filling)
                core.pending.filling.removeAll()
                core.pending.release(through: core.revisions.durable)
                report(.durable(through: core.revisions.durable))
            }
            return core.pending.hasDeliveries
        }
        if delivers { deliver() }
    }

    private func settle(_ finished: CommitQueue.Finished, in core: KeyspaceCore) -> Outcome {
        switch finished {
        case .committed(let batch): return settleCommit(of: batch, in: core)
        case .failed(let batch, let error): return settleFailure(of: batch, error, in: core)
        case .edited(let batch, let changes):
            return settleEdits(changes, interrupting: batch, in: core)
        case .reopened(let changes, let metadata):
            return settleReopening(changes, metadata, in: core)
        case .unopened(let error):
            core.refuseWrites(after: error)
            return failQueued(in: core) ?? .unopened(error)
        case .room(let shortage):
            core.admission.refusals.diskShortage = shortage
            return .room(shortage: shortage)
        case .raised(let reservation):
            core.revisions.allow(through: reservation)
            return .unchanged
        case .compacted(let step, let answers):
            if let step { core.takeOver(step) }
            for answer in answers { core.pending.deliver(.compaction(answer)) }
            return .unchanged
        }
    }

    private func settleCommit(of batch: CommitBatch, in core: KeyspaceCore) -> Outcome {
        // The queue has stopped without reopening the store.
        if core.admission.refusals.reopening != nil { _ = core.adopt([]) }
        core.settle(batch)
        core.pending.release(through: core.revisions.durable)
        queue.recycle(batch)
        return .durable(through: core.revisions.durable)
    }

    private func settleFailure(
        of batch: CommitBatch,
        _ error: StateError,
        in core: KeyspaceCore
    ) -> Outcome {
        let first = batch.firstRevision
        if error.isOutcomeUnknown { core.refuseWrites(after: error) }
        undoAll(batch, in: core, isInDoubt: error.isOutcomeUnknown)
        core.pending.fail(from: first, error)
        queue.recycle(batch)
        if !core.pending.filling.isEmpty {
            queue.submit(core.pending.filling, commitsOnCaller: false)
        }
        return .failed(from: first, error)
    }

    private func settleReopening(
        _ changes: [AdoptedChange],
        _ metadata: [String: String],
        in core: KeyspaceCore
    ) -> Outcome {
        // After a failed piece of compaction nothing was in doubt, and there may be provisional
        // versions.
        let count = core.adopt(changes)
        core.pending.release(through: core.revisions.durable)
        if !core.metadata.isNewer(than: core.revisions.durable) {
            core.metadata.load(metadata, at: core.revisions.durable)
        }
        core.admission.refusals.reopening = nil
        return .reopened(adopted: count, through: changes.last?.revision ?? 0)
    }

    /// Undoes what was queued while a piece of compaction failed: it has not reached storage, and
    /// its writers need not wait until the store is open again.
    ///
    /// - Returns: Nil if there is nothing to undo.
    private func failQueued(in core: KeyspaceCore) -> Outcome? {
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
        if let published { core.keep(published, untilReopened: isInDoubt) }
        queue.resume()
    }

    /// Adopts changes that others made to the store, below what is provisional.
    ///
    /// Requests of callers are repeated on top of it. A transaction that was not submitted as
    /// mutations is undone, and the outcome reports it.
    private func settleEdits(
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
}
