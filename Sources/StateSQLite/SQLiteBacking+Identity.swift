import Glibc
import StateEngine

/// Which store this is: the one that was here last, or a copy.
extension SQLiteBacking {
    /// The identity of the store and its last revision: where the file is a copy, or an older one that was put in its
    /// place, another epoch, and revisions 2^32 above, which the original will not reach while a client remembers them.
    func identify(
        _ connection: SQLiteConnection,
        lastRevision: Int64,
        _ mark: StoreMark?
    ) throws -> LoadedStore {
        let metadata = StoreMetadata(connection)
        let epoch = try metadata.epoch()
        let compacted = try metadata.required(.compacted)
        let revision = try metadata.lastRevision(ofRows: lastRevision)
        guard let identity = FileIdentity(path: location.database) else {
            throw StateError(.storage, "\(location.database): \(lastSystemError())")
        }
        let known = (try metadata.required(.inode), try metadata.required(.birthTime))
        let generation = try metadata.generation()
        let isMoved = known != (identity.inode, identity.birthTime)
        let objection =
            isMoved
            ? "it is another file than its values were written to, as a copy is"
            : mark?.objection(toGeneration: generation, revision: revision)
        guard let objection else {
            return LoadedStore(epoch: epoch, revision: revision, compacted: compacted)
        }
        let newest = max(revision, mark?.acknowledged.revision ?? 0)
        guard newest <= RevisionCeiling.largestRevision - 1 << 32 else {
            throw StateError(
                .storage,
                "\(location.database): revisions end at 2^53, and it is at \(newest)"
            )
        }
        let copy = LoadedStore(
            epoch: .random(),
            revision: newest + (1 << 32),
            compacted: compacted
        )
        try connection.execute("BEGIN IMMEDIATE")
        try metadata.set(.epoch, copy.epoch.description)
        try metadata.set(.leastRevision, "\(copy.revision)")
        try metadata.set(identity)
        try connection.execute("COMMIT")
        onFinding(
            "\(location.database) is not the store that was here last: \(objection); it goes on under another epoch, "
                + "above revision \(copy.revision)"
        )
        return copy
    }

    /// From here on a copy that was made before is another store.
    ///
    /// The database has the generation itself afterwards, not only the log: whatever of the log is lost, the store is known to be
    /// the one that the mark is of.
    func beginGeneration(
        _ connection: SQLiteConnection,
        _ mark: StoreMark,
        _ log: WriteAheadLog,
        at revision: Int64
    ) throws {
        let metadata = StoreMetadata(connection)
        let generation = try mark.begin(after: metadata.generation())
        mark.acknowledged.revision = revision
        do {
            try connection.execute("BEGIN IMMEDIATE")
            try metadata.set(.generation, "\(generation)")
            try connection.execute("COMMIT")
        } catch {
            // A disk without room, or somebody who holds the write lock: the mark knows both generations, and the values
            // can be read.
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            onFinding("\(location.database) can be read, and not written: \(error)")
            return
        }
        mark.acknowledged = AcknowledgedCommit(revision: revision, log: log.end)
        log.checkpoint()
        try mark.settle(generation)
    }
}
