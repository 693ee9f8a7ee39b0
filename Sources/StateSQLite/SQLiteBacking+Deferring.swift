import StateEngine

/// What is deferred is in a log beside the store until it is stored (``DeferralLog``).
extension SQLiteBacking: DeferralKeeping {
    package var hasAllDeferred: Bool { found.hasAllDeferred }

    package var hasLeftDeferred: Bool { found.hasLeftDeferred }

    package func prepareToDefer() { ownership?.deferrals.prepare() }

    package func keep(_ batch: CommitBatch) -> Bool {
        inTurn {
            guard let open, let ownership else { return false }
            return ownership.deferrals.append(batch, storedThrough: open.progress.revision)
        }
    }

    package func noteUnkept() { ownership?.deferrals.noteLoss() }

    package func didStoreDeferred() { ownership?.deferrals.removeAll() }

    /// Stores what the last process had deferred and not stored, in one transaction.
    ///
    /// - Parameters:
    ///   - left: What it has left.
    ///   - store: What it had stored.
    ///   - loaded: What was found in the store; gets what is added.
    ///   - receive: Called for each change, once it is stored.
    /// - Throws: ``StateError``, with the number of changes and why they cannot be stored.
    func recover(
        _ left: DeferralLog.Left,
        in store: OpenStore,
        _ loaded: inout LoadedStore,
        _ receive: (borrowing StoredChange) -> Void
    ) throws {
        var left = left
        guard left.begin(after: loaded.revision) else {
            reports.onFinding(
                "\(location.deferrals) does not continue \(location.database): what it has is lost"
            )
            return
        }
        found.hasAllDeferred = left.isWhole
        guard !left.batches.isEmpty else { return }
        let count = left.batches.reduce(0) { $0 + $1.changeCount }
        let metadata = left.batches.flatMap(\.metadata)
        do {
            try store.commit(rowCount: count, metadata: metadata) { receive in
                for batch in left.batches { try batch.read(receive) }
            }
        } catch let error as StateError {
            throw StateError(
                error.code,
                "\(count) changes that the last run had not stored yet cannot be stored: "
                    + error.message
            )
        }
        for batch in left.batches { batch.read(receive) }
        for entry in metadata { loaded.metadata[entry.name] = entry.text }
        loaded.revision = max(loaded.revision, store.progress.revision)
    }
}
