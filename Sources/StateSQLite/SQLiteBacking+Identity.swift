import StateEngine
import StatePlatform

extension SQLiteBacking {
    /// What belongs to the owner of a store, from load to close.
    struct Ownership {
        let lock: OwnerLock
        let stamp: StoreStamp
    }

    /// The rows that a load has read.
    struct FoundRows {
        var rowCount: Int64
        var revision: Int64
        var cuts: HistoryCuts
        var loaded: LoadedRows
    }

    /// What the load finds, and what was acknowledged when the store was last open.
    struct Found {
        /// The possible numbers of rows, since compaction may not have been synced.
        var rowCounts: ClosedRange<Int64> = 0...0
        /// The revision from which the history was reported as complete.
        var compacted: Int64 = 0
        /// The files that the last commit may not have reached, until somebody takes it.
        var pendingFileList: String?
        /// The rows up to the compacted revision, while they are read.
        var rows: LoadedRows?
        /// Whether all that the last process deferred was stored.
        var hasAllDeferred = false
        /// What the close has left to the next load.
        var leftDeferred = LeftDeferred.nothing
    }
}

/// Decides whether this store is the last known one or a copy.
extension SQLiteBacking {
    /// Creates an empty store, unless there is one, or the rest of one.
    func createIfAbsent() throws {
        if FileIdentity(path: location.database) != nil { return }
        // A log alone is the rest of a lost database, and SQLite would delete it.
        guard FileIdentity(path: location.log) == nil else {
            throw StateError.damaged(location.database, "it is missing, but its log exists")
        }
        // The values are elsewhere: an empty store in their place would hide that.
        if let left = location.unfinishedFiles.first(where: { FileIdentity(path: $0) != nil }) {
            throw StateError(
                .storage,
                "\(left) is left of a restore or a salvage that was broken off: repeat "
                    + "that into a new directory, or remove the file to begin an empty store"
            )
        }
        let stamp = try StoreStamp(path: location.stamp)
        // If there is a stamp of another store, the new store must not count as that one.
        let generation = stamp.isAbsent ? try stamp.begin(after: nil) : nil
        try HistorySchema.create(at: location, generation: generation)
    }

    /// The epoch of the store and its last revision.
    ///
    /// A copy, or an older file in the store's place, gets another epoch and revisions 2^32 higher,
    /// which the original will not reach while a client remembers them.
    ///
    /// Without a stamp, the store counts as the last known one, unless its file was moved.
    func identify(
        _ connection: SQLiteConnection,
        lastRevision: Int64,
        _ stamp: StoreStamp?
    ) throws -> LoadedStore {
        let metadata = StoreMetadata(connection)
        let loaded = LoadedStore(
            epoch: try metadata.epoch(),
            revision: try metadata.lastRevision(ofRows: lastRevision),
            compacted: try metadata.required(.compacted)
        )
        guard let identity = FileIdentity(path: location.database) else {
            throw StateError(.storage, "\(location.database): \(lastSystemError())")
        }
        let isMoved = try metadata.identity() != identity
        let generation = try metadata.generation()
        let objection =
            isMoved
            ? "its file is not the one that its values were written to"
            : stamp?.objection(toGeneration: generation, revision: loaded.revision)
        guard let objection else { return loaded }
        let copy = try copy(of: loaded, above: stamp?.acknowledged.revision ?? 0)
        try connection.transaction { () throws(SQLiteFailure) in
            try metadata.set(.epoch, copy.epoch.description)
            try metadata.set(.leastRevision, "\(copy.revision)")
            try metadata.set(identity)
        }
        reports.onFinding(
            "\(location.database) was copied or restored (\(objection)); "
                + "continuing under a new epoch after revision \(copy.revision)"
        )
        return copy
    }

    private func copy(of store: LoadedStore, above acknowledged: Int64) throws -> LoadedStore {
        let newest = max(store.revision, acknowledged)
        guard newest <= RevisionReservation.largestRevision - 1 << 32 else {
            throw StateError(
                .storage,
                "\(location.database): revision \(newest) is too close to the limit of 2^53"
            )
        }
        return LoadedStore(
            epoch: .random(),
            revision: newest + (1 << 32),
            compacted: store.compacted
        )
    }

    /// From here on, a copy that was made before counts as another store.
    ///
    /// Afterwards the database itself has the generation, not only the log: even if the log is
    /// lost, the store is known to belong to the stamp.
    func beginGeneration(
        _ connection: SQLiteConnection,
        _ stamp: StoreStamp,
        _ log: WriteAheadLog,
        at revision: Int64
    ) throws {
        let metadata = StoreMetadata(connection)
        let generation = try stamp.begin(after: metadata.generation())
        stamp.acknowledged.revision = revision
        do {
            try connection.transaction { () throws(SQLiteFailure) in
                try metadata.set(.generation, "\(generation)")
            }
        } catch {
            // A full disk, or another process that holds the write lock: the stamp knows both
            // generations, and the values can be read.
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            reports.onFinding("serving \(location.database) read-only: \(error)")
            return
        }
        stamp.acknowledged = AcknowledgedCommit(revision: revision, log: log.end)
        log.checkpoint()
        try stamp.settle(generation)
    }
}
