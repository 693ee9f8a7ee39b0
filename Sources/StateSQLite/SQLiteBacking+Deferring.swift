import CSQLite
import StateEngine

/// What is deferred is in a log beside the store until it is stored (``DeferralLog``).
extension SQLiteBacking: DeferralKeeping {
    package var hasAllDeferred: Bool { found.hasAllDeferred }

    package var leftDeferred: LeftDeferred { found.leftDeferred }

    package func prepareToDefer() { deferrals.prepare() }

    package func add(_ batch: CommitBatch, storedThrough revision: Int64) {
        deferrals.add(batch, storedThrough: revision)
    }

    package func keep() -> Bool { deferrals.keep() }

    package var unstoredByteCount: Int { deferrals.unstoredByteCount }

    package func didStore(through revision: Int64) {
        deferrals.remove(through: revision)
    }

    /// Stores what the last process had deferred and not stored, in one transaction.
    ///
    /// - Parameters:
    ///   - left: What it has left.
    ///   - connection: To the store, which was checked.
    ///   - rows: What was found in the store; gets what is added, as `loaded` does.
    ///   - loaded: The store.
    ///   - receive: Called for each change, once it is stored.
    /// - Throws: ``StateError``, with the number of changes and why they cannot be stored; the store
    ///   and what is left are unchanged.
    func recover(
        _ left: DeferralLog.Left,
        _ connection: SQLiteConnection,
        _ rows: inout FoundRows,
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
            try connection.transaction { () throws(SQLiteFailure) in
                try append(left.batches, count, metadata, to: connection)
            }
        } catch {
            if connection.isInTransaction { try? connection.execute("ROLLBACK") }
            throw StateError(
                error.primaryCode == SQLITE_FULL ? .noSpace : .storage,
                "\(count) changes that the last run had not stored yet cannot be stored in "
                    + "\(location.database): \(error)"
            )
        }
        let now = clock()
        for batch in left.batches {
            batch.read { change in
                rows.cuts.take(change, at: now)
                receive(change)
            }
        }
        rows.rowCount += Int64(count)
        for entry in metadata { loaded.metadata[entry.name] = entry.text }
        loaded.revision = max(loaded.revision, left.batches.last?.lastRevision ?? 0)
    }

    private func append(
        _ batches: [DeferredBatch],
        _ count: Int,
        _ metadata: [MetadataEntry],
        to connection: SQLiteConnection
    ) throws(SQLiteFailure) {
        let writer = try HistoryWriter(connection)
        writer.begin(rowCount: count)
        for batch in batches {
            try batch.read { (change) throws(SQLiteFailure) in try writer.append(change) }
        }
        try MetadataWriter(connection).write(metadata)
        // It counts them as of a clean stop.
        try StoreMetadata(connection).remove(.rowCount)
    }
}
