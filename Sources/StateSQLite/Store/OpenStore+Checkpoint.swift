import StateEngine

extension OpenStore {
    /// Moves the log into the database, as far as it can be.
    ///
    /// What is moved is acknowledged first. Else a start would not miss the end of a damaged log, and its older pages would lie over
    /// newer ones of the database; nor would it know the pages again if the header were torn as the log was begun anew.
    ///
    /// If a sync fails, the kernel may drop what it was to make safe, and the next sync says nothing of it. Of a transaction that
    /// was not acknowledged, as a piece of compaction is, nobody would know: what is appended behind the hole counts for nothing at
    /// the next start, and a page that is read back from it is an old one. So the store has to be opened anew.
    ///
    /// - Parameter acknowledges: False if a transaction has just failed for want of room, which a checkpoint may make.
    func checkpoint(acknowledges: Bool = true) {
        room.makeWay()
        if acknowledges, progress.hasUnsyncedCompaction {
            // Without success the checkpoint itself acknowledges it, once it has synced the log.
            log.withoutWaiting { try? syncCompaction() }
        }
        if let fault { return log.note(fault.message) }
        var failure = log.checkpoint()
        if log.isDatabaseFull, room.noteFull(byteCount: 0) { failure = log.checkpoint() }
        room.look()
        guard progress.hasUnsyncedCompaction else { return }
        if let failure {
            unknown(failure)
        } else if log.isMoved {
            // It has synced the log before.
            progress.acknowledgeAll(to: log.end)
        }
    }

    /// How many rows there are, and another generation: a copy that was made while the store was open is older than it.
    private func recordStop() throws {
        let metadata = StoreMetadata(connection)
        let generation = try progress.stamp.begin(after: metadata.generation())
        try connection.transaction { () throws(SQLiteFailure) in
            try metadata.set(.rowCount, "\(progress.rowCount)")
            try metadata.set(.generation, "\(generation)")
        }
        progress.acknowledgeAll(to: log.end)
        try progress.stamp.settle(generation)
    }

    /// Ends cleanly, as far as the disk allows; what it did not allow is in the status.
    func finish() -> StorageStatus {
        // What is there by now under the names of its files is not ours to write to.
        guard fault == nil, files.finding == nil else { return log.status }
        var unrecorded: String?
        do {
            try recordStop()
        } catch {
            rollBack()
            unrecorded = "a clean stop could not be recorded: \(error)"
        }
        if let unrecorded { log.note(unrecorded) }
        // Its sync may have failed, which should have covered compaction too: see ``checkpoint()``.
        if unrecorded != nil, progress.hasUnsyncedCompaction { return log.status }
        // Closing the connection takes the log away, which, unlike cutting it to nothing, a loss of power does not do by half.
        checkpoint()
        if unrecorded == nil, log.isMoved { progress.acknowledgeWithoutLog() }
        if let unrecorded { log.note(unrecorded) }
        if fault == nil { connection.checkpointsOnClose() }
        return log.status
    }
}
