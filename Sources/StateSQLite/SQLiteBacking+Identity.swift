import Glibc
import StateEngine

/// Which store this is: the one that was here last, or a copy.
extension SQLiteBacking {
    /// The identity of the store and its last revision: where the file is a copy, or an older one that was put in its
    /// place, another epoch, and revisions 2^32 above, which the original will not reach while a client remembers them.
    ///
    /// Without a stamp the store is known to be the one that was here, but for a file that was moved.
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
            ? "it is another file than its values were written to, as a copy is"
            : stamp?.objection(toGeneration: generation, revision: loaded.revision)
        guard let objection else { return loaded }
        let copy = try copy(of: loaded, above: stamp?.acknowledged.revision ?? 0)
        try connection.transaction { () throws(SQLiteFailure) in
            try metadata.set(.epoch, copy.epoch.description)
            try metadata.set(.leastRevision, "\(copy.revision)")
            try metadata.set(identity)
        }
        onFinding(
            "\(location.database) is not the store that was here last: \(objection); it goes on under another epoch, "
                + "above revision \(copy.revision)"
        )
        return copy
    }

    private func copy(of store: LoadedStore, above acknowledged: Int64) throws -> LoadedStore {
        let newest = max(store.revision, acknowledged)
        guard newest <= RevisionReservation.largestRevision - 1 << 32 else {
            throw StateError(
                .storage,
                "\(location.database): revisions end at 2^53, and it is at \(newest)"
            )
        }
        return LoadedStore(
            epoch: .random(),
            revision: newest + (1 << 32),
            compacted: store.compacted
        )
    }

    /// From here on a copy that was made before is another store.
    ///
    /// The database has the generation itself afterwards, not only the log: whatever of the log is lost, the store is known to be
    /// the one that the stamp is of.
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
            // A disk without room, or somebody who holds the write lock: the stamp knows both generations, and the values
            // can be read.
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            onFinding("\(location.database) can be read, and not written: \(error)")
            return
        }
        stamp.acknowledged = AcknowledgedCommit(revision: revision, log: log.end)
        log.checkpoint()
        try stamp.settle(generation)
    }
}
