import StateEngine

extension OpenStore {
    /// Whether ``maintainLog()`` has anything to do.
    var isLogDue: Bool {
        guard let mover, mover.isMoving else { return log.isCheckpointDue }
        return mover.isDone
    }

    func beginMoving() -> Bool {
        guard log.movesAside, fault == nil, room.isAmple else { return false }
        acknowledgeCompaction()
        guard fault == nil, !progress.hasUnsyncedCompaction else { return false }
        if mover == nil {
            mover = try? LogMover(beside: connection)
            // A log of another file would be moved over the pages of this database.
            guard files.finding == nil else {
                mover = nil
                return false
            }
        }
        return mover?.begin() ?? false
    }

    func didMove(_ result: Result<Int, SQLiteFailure>) {
        switch result {
        case .success(let count) where log.isRestLong(after: count):
            if !beginMoving() { checkpoint() }
        case .failure(let failure) where failure.isOfSync:
            unknown(failure)
        case .success, .failure:
            // It moves the rest, or finds out what the reason is.
            checkpoint()
        }
    }

    /// Waits until no other thread moves the log.
    func waitForMover() {
        guard case .failure(let failure)? = mover?.wait() else { return }
        if failure.isOfSync { unknown(failure) }
    }

    private func acknowledgeCompaction() {
        guard progress.hasUnsyncedCompaction else { return }
        // If this fails, the checkpoint itself acknowledges it, once it has synced the log.
        log.withoutWaiting { try? syncCompaction() }
    }

    /// Moves as much of the log as possible into the database.
    ///
    /// What is moved is acknowledged first. Otherwise a start would not notice the missing end of a
    /// damaged log, whose older pages would hide newer ones of the database; nor would it recognise
    /// the pages if the header were torn when the log was restarted.
    ///
    /// If a sync fails, the kernel may drop the pages, and the next sync reports nothing. That does
    /// no harm if the next checkpoint moves them again. But nobody would know it of a transaction
    /// that is not acknowledged, such as a step of compaction: what is appended after the gap is
    /// ignored at the next start, and a page that is read back from it is an old one. Nor would a
    /// checkpoint move a part of the log again that counts as moved. So the store must then be
    /// reopened.
    ///
    /// - Parameter acknowledges: False if a transaction has just failed because the disk is full; a
    ///   checkpoint may free space.
    func checkpoint(acknowledges: Bool = true) {
        waitForMover()
        room.makeWay()
        if acknowledges { acknowledgeCompaction() }
        if let fault { return log.note(fault.message) }
        var failure = log.checkpoint()
        if log.isDatabaseFull, room.noteFull(byteCount: 0) { failure = log.checkpoint() }
        room.look()
        if let failure {
            if progress.hasUnsyncedCompaction || log.partLoss != nil { unknown(failure) }
        } else if log.isMoved, progress.hasUnsyncedCompaction {
            // It synced the log first.
            progress.acknowledgeAll(to: log.end)
        }
    }

    /// Records the number of rows and a new generation: a copy that was made while the store was
    /// open is then older.
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

    /// Ends cleanly, as far as the disk permits; failures are in the status.
    func finish() -> StorageStatus {
        // The connection that is closed last removes the log.
        waitForMover()
        mover = nil
        // Other files now have the names of the store's files; they must not be written.
        guard fault == nil, log.partLoss == nil, files.finding == nil else { return log.status }
        var unrecorded: String?
        do {
            try recordStop()
        } catch {
            rollBack()
            unrecorded = "a clean stop could not be recorded: \(error)"
        }
        if let unrecorded { log.note(unrecorded) }
        // Its sync, which should have covered compaction too, may have failed: see
        // ``checkpoint()``.
        if unrecorded != nil, progress.hasUnsyncedCompaction { return log.status }
        // Closing the connection removes the log. Unlike truncating it, a power failure cannot
        // leave that half done.
        checkpoint()
        if unrecorded == nil, log.isMoved { progress.acknowledgeWithoutLog() }
        if let unrecorded { log.note(unrecorded) }
        if fault == nil { connection.checkpointsOnClose() }
        return log.status
    }
}
