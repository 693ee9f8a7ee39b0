import CLinux
import Synchronization

/// What the commit thread does after the store failed, or was changed by others.
extension CommitQueue {
    func adoptEdits() {
        let changes = capabilities.editing?.takeOutsideChanges() ?? []
        if !changes.isEmpty { _ = answer(.edited(nil, changes)) }
        guard let files = files.withLock({ $0 }) else { return }
        files.look()
        // Threads that wait until edits are adopted continue.
        state.withLock { $0.notify }()
    }

    /// Reopens the store, after pauses of 0.1 s, 0.2 s and so on up to 10 s while it fails, until
    /// it succeeds or the queue stops.
    func reopen(_ compaction: inout Compaction) {
        let revision = state.withLock { $0.storedRevision }
        var pause: Int64 = 100_000_000
        while true {
            var adopted: [AdoptedChange] = []
            do {
                let metadata = try backing.reopen(after: revision) {
                    adopted.append(AdoptedChange($0))
                }
                try settleFiles(adopted)
                if let last = adopted.last { settleDeferred(through: last.revision) }
                state.withLock { $0.openingError = nil }
                _ = answer(.reopened(adopted, metadata: metadata))
                return
            } catch {
                let error = error as? StateError ?? StateError(.storage, "\(error)")
                _ = answer(.unopened(error))
                refuseRequests(&compaction, error)
                state.withLock { $0.openingError = error }
                refuseStoreRequests(error)
            }
            guard sleep(nanoseconds: pause) else { return }
            pause = min(pause * 2, 10_000_000_000)
        }
    }

    /// The store may hold what its last commit staged; its list of pending files names the files.
    private func settleFiles(_ adopted: [AdoptedChange]) throws {
        guard let files = files.withLock({ $0 }), let store = capabilities.files else { return }
        var values: [[UInt8]: [UInt8]?] = [:]
        for change in adopted { values[change.key] = .some(change.value) }
        let keyspace = files.keyspace.withLock { $0 }
        try files.settle(store.takePendingFileList()) { key in
            values[key.bytes] ?? keyspace?.entry(for: key)?.value
        }
    }

    /// Waits, whatever is queued meanwhile.
    ///
    /// - Returns: False if the queue is stopping.
    private func sleep(nanoseconds: Int64) -> Bool {
        let end = clinux_monotonic_nanoseconds() + nanoseconds
        while true {
            let rest = end - clinux_monotonic_nanoseconds()
            let isStopping = state.withLock { state in
                state.wakingCount = rest > 0 ? 1 : nil
                return state.work.isStopping
            }
            guard !isStopping else { return false }
            guard rest > 0 else { return true }
            parking.wait(nanoseconds: rest)
        }
    }

    // MARK: The keyspace's side

    /// The revision of the first queued transaction that a failure would undo.
    var firstUndoneRevision: Int64? {
        state.withLock { $0.queued.lazy.compactMap(\.firstUndoneRevision).first }
    }

    /// Puts transactions in front of what is queued.
    func putFirst(_ batch: CommitBatch) {
        state.withLock { state in
            state.queued.insert(batch, at: 0)
            hasQueued.store(true, ordering: .relaxed)
        }
    }

    /// Takes what no commit has taken yet.
    func takeQueued() -> CommitBatch? {
        state.withLock { state in
            let all = state.queued.first
            for batch in state.queued.dropFirst() { all?.take(batch) }
            state.queued = []
            hasQueued.store(false, ordering: .relaxed)
            return all
        }
    }

    /// Everything that was computed on a failed commit is undone: new transactions may be
    /// committed.
    ///
    /// The thread is woken even if none is queued: with the disk still full, all writers are
    /// refused, and only the thread looks for room.
    func resume() {
        let wakes = state.withLock { state in
            state.isHalted = false
            guard state.wakingCount != nil, state.committer != .writer else { return false }
            state.wakingCount = nil
            return true
        }
        if wakes { parking.signal() }
    }
}
