import CLinux
import StateSystem
import Synchronization

/// How a batch reaches storage: at once, or later than everybody else.
///
/// What may be later is stored with the next commit that a writer waits for; when its time has
/// come; when there is too much of it; before the history is read or compacted; and at the end.
extension CommitQueue {
    /// Commits a batch to storage.
    func commit(_ batch: CommitBatch) -> Finished {
        if canDefer(batch) { return .committed(batch) }
        let files = files.withLock { $0 }
        do {
            try withDeferred(batch) { () throws in try store(batch, files) }
            return .committed(batch)
        } catch is EditedMeanwhile {
            return .edited(batch, capabilities.editing?.takeOutsideChanges() ?? [])
        } catch {
            files?.undoAdoptions()
            let unknown = StateError(.readOnly, "\(StateError.unknownOutcome): \(error)")
            return .failed(batch, error as? StateError ?? unknown)
        }
    }

    private func store(_ batch: CommitBatch, _ files: FileContainers?) throws {
        guard let files, let staged = try files.stage(batch) else {
            return try backing.commit(batch)
        }
        // Order matters: new files beside their targets, the rows with the list of pending files,
        // then the files in their places.
        do {
            try backing.commit(batch)
        } catch {
            files.drop(staged)
            throw error
        }
        files.publish(staged)
    }

    // MARK: Later than everybody else

    /// 4 MiB: at most so much is lost in a crash, whatever the rules say.
    static let standardDeferredByteLimit = 4 << 20

    /// Defers a batch that storage need not have now; to be called with the backing.
    ///
    /// - Returns: False if it must be stored.
    func canDefer(_ batch: CommitBatch) -> Bool {
        switch batch.storing {
        case .now: return false
        case .never:
            guard !deferred.isEmpty else { return false }
            batch.isDeferred = true
        case .within(let nanoseconds):
            let limit = deferredByteLimit.load(ordering: .relaxed)
            guard deferred.byteCount + batch.byteCount <= limit else { return false }
            deferred.take(batch, until: clinux_monotonic_nanoseconds() + nanoseconds)
            batch.isDeferred = true
            setTime()
        }
        return true
    }

    /// Runs `body`, which commits a batch, with the deferred changes before it.
    func withDeferred(_ batch: CommitBatch, _ body: () throws -> Void) throws {
        guard !deferred.isEmpty else { return try body() }
        batch.earlier = deferred
        defer { batch.earlier = nil }
        try body()
        settleDeferred(through: deferred.lastRevision)
    }

    /// Storage has everything up to a revision.
    func settleDeferred(through revision: Int64) {
        guard revision >= deferred.lastRevision else { return }
        deferred.removeAll()
        setTime()
    }

    /// Stores what is deferred, and answers those who wait for that.
    ///
    /// If it fails, it is tried again after a second.
    func storeDeferred() {
        let requests = takeStoreRequests()
        let failure = tryToStoreDeferred()
        if let failure, !failure.isOutcomeUnknown {
            let retryAt = clinux_monotonic_nanoseconds() + 1_000_000_000
            state.withLock { $0.storeAt = retryAt }
        }
        for request in requests { request(failure) }
    }

    private func tryToStoreDeferred() -> StateError? {
        guard !deferred.isEmpty else { return nil }
        let batch = CommitBatch()
        let last = deferred.lastRevision
        do {
            try withDeferred(batch) { try backing.commit(batch) }
            _ = answer(.stored(through: last))
            noteDeferral(nil)
            return nil
        } catch {
            let unknown = StateError(.readOnly, "\(StateError.unknownOutcome): \(error)")
            let failure = error as? StateError ?? unknown
            if failure.isOutcomeUnknown {
                _ = answer(.failed(batch, failure))
            } else {
                noteDeferral(failure)
            }
            return failure
        }
    }

    /// Reports a failure, and the end of failures, once.
    private func noteDeferral(_ failure: StateError?) {
        guard deferred.hasFailed != (failure != nil) else { return }
        deferred.hasFailed = failure != nil
        _ = answer(.deferral(failure: failure))
    }

    /// Stores what is deferred once the thread stops; what it cannot store stays.
    func storeDeferredAtTheEnd() {
        storeDeferred()
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
            if state.work.isStopping { return (closure, false) }
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

    private func takeStoreRequests() -> [@Sendable (StateError?) -> Void] {
        state.withLock { state in
            defer { state.storeRequests = [] }
            return state.storeRequests
        }
    }

    /// Takes over when the deferred changes must be stored, and how many there are.
    private func setTime() {
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
