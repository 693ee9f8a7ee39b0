import StateSystem

/// The keyspace in this process: what a program embeds, and what `stated` serves.
///
/// A write is visible at once to who may read provisional versions (the daemon's connections, whose replies are held),
/// and durable, told and readable for everybody else when it is on stable storage, by the commit thread or a writer that waits.
public final class LocalKeyspace: WaitableKeyspace {
    /// What became of a batch.
    package enum Outcome {
        /// Everything up to this revision is durable now; it is delivered to its watchers.
        case durable(through: Int64)
        /// Everything from this revision on was undone.
        case failed(from: Int64, StateError)
        /// After a commit whose outcome is unknown the store is open again; it held so many commits beyond what was told,
        /// up to this revision, and they are told now; the revision is 0 where it held none.
        case reopened(adopted: Int, through: Int64)
        /// It could not be opened, and will be tried again; writes are refused until then.
        case unopened(StateError)
        /// From here on only keys in memory are set, for the disk is full; nil: all are.
        case room(shortage: StateError?)
        /// Nothing became durable or was undone: revisions were reserved, history was compacted.
        case unchanged
    }

    @usableFromInline let core: StateLock<KeyspaceCore>
    let queue: CommitQueue
    let backing: any Backing
    /// Whether commits go to storage before they are told.
    package let isPersistent: Bool

    /// Opens the store and reads it.
    ///
    /// It stays open until ``close()``, whether or not anybody holds the keyspace.
    ///
    /// - Throws: ``StateError``, where the store is locked, corrupt, of a newer format or cannot be opened; it is left as it is.
    /// - Complexity: O(*n*) in the changes of the history.
    public init(backing: any Backing, limits: Limits = Limits()) throws(StateError) {
        let store = StoreTraits(
            epoch: Epoch(bits: 1),
            isPersistent: backing.isPersistent,
            hasHistory: backing.capabilities.history != nil
        )
        let loaded = KeyspaceCore(store, limits: limits)
        do {
            loaded.finishLoading(try backing.load { loaded.load($0) })
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
        // On purpose a cycle until `close`: the commit thread reads what this object owns.
        queue.setNotify { self.settle { _ in } }
        queue.start()
        capabilities.editing?.watchOutside { [weak queue] in queue?.submit(.look) }
    }

    /// Whether the caller is on the commit thread, which cannot ``close()``.
    package var isOnCommitThread: Bool { queue.isOnItsThread }

    /// Commits what is queued and closes the store.
    ///
    /// What is written afterwards is refused. It must not be called by a completion or a receiver: that ends the process.
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

    /// What was, where the backing keeps it.
    package var history: (any HistoryBacking)? { queue.capabilities.history }

    // MARK: The keyspace's own state

    /// Runs `body` with the state, alone.
    @inlinable
    package func withCore<R, E: Error>(_ body: (KeyspaceCore) throws(E) -> R) throws(E) -> R {
        try core.withLock { (core) throws(E) -> R in try body(core) }
    }

    /// Who settles what storage has answered: by default who has committed.
    ///
    /// - Parameter wake: Called by who has committed whenever there is something to ``settle(_:)``; it may only wake another,
    ///   who holds the keyspace until it is closed.
    package func settleElsewhere(_ wake: @escaping @Sendable () -> Void) { queue.setNotify(wake) }

    /// Hands what was finished to the commit thread; without storage, tells it.
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

    /// The same before all that is at hand was read, where the commit thread has nothing to do and it is worth a sync.
    package func publishEarly() {
        guard isPersistent, queue.isIdle else { return }
        withCore { core in
            if core.pending.filling.transactionCount >= 64 {
                queue.submit(core.pending.filling, commitsOnCaller: false)
            }
        }
    }

    /// Commits on this thread what waits for storage, where the commit thread has nothing to do.
    package func commitOnCaller() { queue.commitHere() }

    /// Takes over what storage has answered: watchers are told first, then `report` hears of it, then who embeds the keyspace.
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
        // At the end, without the store having been opened again.
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
        // After a piece of compaction that failed nothing was in doubt, and there may be provisional versions.
        let count = core.adopt(changes)
        core.pending.release(through: core.revisions.durable)
        if !core.metadata.isNewer(than: core.revisions.durable) {
            core.metadata.load(metadata, at: core.revisions.durable)
        }
        core.admission.refusals.reopening = nil
        return .reopened(adopted: count, through: changes.last?.revision ?? 0)
    }

    /// Undoes what was queued while a piece of compaction failed: it has not reached storage, and its writers need not wait until the
    /// store is open again.
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

    /// Undoes a failed batch and all that was computed on it, newest first.
    private func undoAll(
        _ batch: CommitBatch?,
        in core: KeyspaceCore,
        isInDoubt: Bool = false
    ) {
        let queued = queue.takeQueued()
        let told = core.takePublished(from: [batch, queued, core.pending.filling])
        core.undo(core.pending.filling)
        core.pending.filling.removeAll()
        if let queued {
            core.undo(queued)
            queue.recycle(queued)
        }
        if let batch { core.undo(batch) }
        if let told { core.keep(told, untilReopened: isInDoubt) }
        queue.resume()
    }

    /// Adopts what others did to the store, below what is provisional.
    ///
    /// What callers submitted is done again on it; a transaction that was not submitted is undone, and the outcome says so.
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
        // Order matters: what is provisional was computed without them.
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
