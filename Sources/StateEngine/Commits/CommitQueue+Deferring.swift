import CLinux
import StateSystem
import Synchronization

/// How changes reach storage that may be there later than everybody else has them.
///
/// A backing may have them before a reply shows them, without a sync (``DeferralKeeping``). They are stored
/// with the next commit that a writer waits for; when its time has come; when there is too much of it; before
/// the history is read or compacted; and at the end.
extension CommitQueue {
    /// Commits what is queued on this thread, unless another thread is committing.
    ///
    /// The caller waits for what it submitted: it is answered here, or the commit thread has it.
    func commitHere() {
        let batch = state.withLock { state -> CommitBatch? in
            guard state.committer == .nobody, !state.isHalted, state.work.letsWritersCommit,
                !state.isThreadDue
            else { return nil }
            return take(&state, for: .writer)
        }
        guard let batch else { return }
        let count = batch.transactionCount
        let finished = commit(batch)
        if case .failed = finished { noteFailed(count) }
        let shortage = capabilities.compaction?.shortage
        // Order matters: the next commit begins, then the answers are sent.
        _ = answer(finished)
        answer(shortage)
    }

    /// 4 MiB: at most so much is lost in a crash, whatever the rules say.
    static let standardDeferredByteLimit = 4 << 20

    /// Whether another batch may be deferred.
    ///
    /// Once storage has refused, always: its writers have their answers, and those of later changes
    /// wait for storage.
    func hasRoomToDefer(_ batch: CommitBatch) -> Bool {
        let footprint = DeferredChanges.footprint(batch.byteCount, batch.changes.count)
        let limit = deferredByteLimit.load(ordering: .relaxed)
        return deferred.hasFailed || deferred.footprint + footprint <= limit
    }

    /// Notes what is published of a batch, and has the backing take a copy of it for ``keepPublished()``.
    ///
    /// Called under the keyspace's lock, before the batch is queued.
    func addPublished(of batch: CommitBatch) {
        published.added.store(max(addedRevision, batch.lastRevision), ordering: .relaxed)
        guard let deferrals = capabilities.deferrals, let stored = batch.storedRevision else {
            return
        }
        let last = published.addedForStorage.load(ordering: .relaxed)
        published.addedForStorage.store(max(last, stored), ordering: .relaxed)
        let submitted = published.submitted.load(ordering: .relaxed)
        // What comes again after a failure, or with others that wait for storage, the commit thread appends.
        if case .within = batch.storing, batch.firstRevision > submitted {
            deferrals.add(batch, after: submitted)
        }
    }

    /// Keeps what was published with the last submissions where the end of the process does not lose it.
    ///
    /// Called before a reply shows it, and without the keyspace's lock: it may wait for the disk.
    ///
    /// - Returns: False if something is not kept: the commit thread keeps or stores it.
    func keepPublished() -> Bool {
        let revision = published.addedForStorage.load(ordering: .relaxed)
        return capabilities.deferrals?.keep(through: revision) ?? true
    }

    /// The same for a batch and what was deferred before it; to be called with the backing.
    func append(_ batch: CommitBatch) -> Bool {
        batch.earlier = deferred.isEmpty ? nil : deferred
        defer { batch.earlier = nil }
        return capabilities.deferrals?.append(batch) ?? true
    }

    /// Replies show what is not kept.
    func noteShownOnly() {
        guard !published.isShownOnly.exchange(true, ordering: .relaxed) else { return }
        capabilities.deferrals?.noteShownOnly()
    }

    /// Whether replies may show what is kept before storage has it: not if storage is far behind.
    var isNearlyStored: Bool {
        let limit = deferredByteLimit.load(ordering: .relaxed)
        return capabilities.deferrals?.unsyncedByteCount ?? 0 <= 4 * limit
    }

    /// Whether the store could not be opened again yet: that can take any time.
    var cannotOpen: Bool { state.withLock { $0.openingError != nil } }

    /// Defers a batch for at most so long.
    func deferNow(_ batch: CommitBatch, _ nanoseconds: Int64) {
        let now = clinux_monotonic_nanoseconds()
        deferred.take(batch, until: now + nanoseconds)
        batch.isDeferred = true
        setTime()
    }

    /// Storage has refused a batch: if nobody waits for it, it is deferred, however much that is.
    ///
    /// - Returns: Whether it is.
    func keepForLater(_ batch: CommitBatch, after failure: StateError) -> Bool {
        guard case .within(let nanoseconds) = batch.storing, !failure.isOutcomeUnknown else {
            return false
        }
        noteDeferral(failure)
        if !keepPublished(), !append(batch) { noteShownOnly() }
        deferNow(batch, nanoseconds)
        postpone()
        return true
    }

    /// Storage is asked again in a second.
    private func postpone() {
        deferred.postpone(until: clinux_monotonic_nanoseconds() + 1_000_000_000)
        setTime()
    }

    /// Storage has everything up to a revision.
    func settleDeferred(through revision: Int64) {
        guard revision >= deferred.lastRevision else { return }
        // A commit that only waits for them has no revision of its own: if storage is opened again,
        // they are not to be taken for unknown.
        state.withLock { $0.storedRevision = max($0.storedRevision, revision) }
        deferred.removeAll()
        if published.isShownOnly.exchange(false, ordering: .relaxed) {
            capabilities.deferrals?.prepareToDefer()
        }
        setTime()
        noteDeferral(nil)
    }

    /// Stores what is deferred, and answers those who wait for that.
    ///
    /// If it fails, it is tried again after a second.
    ///
    /// - Returns: Why storage refused it.
    @discardableResult
    func storeDeferred() -> StateError? {
        let requests = takeStoreRequests()
        let failure = tryToStoreDeferred()
        for request in requests { request(failure) }
        return failure
    }

    private func tryToStoreDeferred() -> StateError? {
        guard !deferred.isEmpty else { return nil }
        let batch = CommitBatch()
        let last = deferred.lastRevision
        do {
            try withDeferred(batch) { try backing.commit(batch) }
            _ = answer(.stored(through: last))
            return nil
        } catch {
            let unknown = StateError(.readOnly, "\(StateError.unknownOutcome): \(error)")
            let failure = error as? StateError ?? unknown
            noteDeferral(failure)
            postpone()
            if failure.isOutcomeUnknown { _ = answer(.failed(batch, failure)) }
            return failure
        }
    }

    /// Reports a failure, and the end of failures, once; a writer keeps the backing.
    private func noteDeferral(_ failure: StateError?) {
        guard deferred.hasFailed != (failure != nil) else { return }
        deferred.hasFailed = failure != nil
        let notify = state.withLock { state in
            state.finished.append(.deferral(failure: failure))
            return state.notify
        }
        notify()
    }

    /// The thread has stopped: what a batch has for storage counts as deferred for good.
    func noteLost(_ batch: CommitBatch) {
        deferredCount.wrappingAdd(batch.changeCount, ordering: .relaxed)
        deferredByteCount.wrappingAdd(batch.byteCount, ordering: .relaxed)
        if !keepPublished() { noteShownOnly() }
    }

    /// Stores what is deferred once the thread stops; what it cannot store stays.
    func storeDeferredAtTheEnd() {
        if storeDeferred() != nil {
            published.isRestKept.store(keepPublished(), ordering: .relaxed)
            if !published.isRestKept.load(ordering: .relaxed) { noteShownOnly() }
        }
        refuseStoreRequests(StateError(.readOnly, "the keyspace is closed"))
    }

    /// Waits until storage has everything that was deferred before the call; not for the thread
    /// that settles.
    ///
    /// - Throws: The error of storage; it has nothing of that then.
    /// - Complexity: One comparison if nothing is deferred, else a commit.
    func waitForDeferred() throws(StateError) {
        guard deferredCount.load(ordering: .acquiring) > 0 else { return }
        let outcome = StateLock<StateError?>(nil)
        let done = BlockingSemaphore()
        let closure = StateError(.readOnly, "the keyspace is closed")
        let (error, wakes) = state.withLock { state -> (StateError?, Bool) in
            if state.work.isStopping || state.refusesToStore { return (closure, false) }
            if let error = state.openingError { return (error, false) }
            state.storeRequests.append { failure in
                outcome.withLock { $0 = failure }
                done.signal()
            }
            return (nil, state.wakes())
        }
        if let error { throw error }
        if wakes { parking.signal() }
        done.wait(nanoseconds: nil)
        if let failure = outcome.withLock({ $0 }) { throw failure }
    }

    /// The store cannot be opened, or is closed: those who wait are answered.
    func refuseStoreRequests(_ error: StateError) {
        for request in takeStoreRequests() { request(error) }
    }

    /// Nobody waits for what is deferred any more, now or later.
    func endStoreRequests() {
        state.withLock { $0.refusesToStore = true }
        refuseStoreRequests(StateError(.readOnly, "the keyspace is closed"))
    }

    private func takeStoreRequests() -> [@Sendable (StateError?) -> Void] {
        state.withLock { state in
            defer { state.storeRequests = [] }
            return state.storeRequests
        }
    }

    /// Takes over when the deferred changes must be stored, and how many there are.
    func setTime() {
        deferredByteCount.store(deferred.byteCount, ordering: .relaxed)
        deferredCount.store(deferred.count, ordering: .releasing)
        let due = deferred.due
        let isNew = state.withLock { state in
            defer { state.storeAt = due }
            return due < state.storeAt && state.committer == .writer
        }
        // The thread rests until another time.
        if isNew { parking.signal() }
    }
}
