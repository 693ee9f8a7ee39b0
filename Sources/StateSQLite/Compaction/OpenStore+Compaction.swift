import StateEngine

extension OpenStore {
    /// Compacts a part of the history up to `revision`, in one transaction.
    ///
    /// The transaction is not synced: the next commit's sync covers it. A power cut before that
    /// leaves a longer history, which does no harm.
    ///
    /// - Throws: What ``commit(rowCount:metadata:pendingFileList:_:)`` throws; the history is as it
    ///   was.
    func compact(
        through revision: Int64,
        while goesOn: () -> Bool
    ) throws -> CompactionStep {
        try requireNoFault()
        guard !log.isCrowded else {
            throw StateError(
                .noSpace,
                "the log of \(location.database) is too long to compact now; it is tried again"
            )
        }
        var step = CompactionStep(compacted: sweep.compacted)
        if sweep.isCounting {
            sweep.countRange(while: goesOn)
            step.isDone = false
            return step
        }
        if sweep.beginStretch() {
            step.isDone = false
            try withoutSync {
                try delete(&step) { step throws(SQLiteFailure) in
                    try sweep.deleteStretch(&step, while: goesOn)
                }
            }
            return step
        }
        if sweep.plan == nil, try sweepRuled(&step, while: goesOn) {
            step.isDone = false
            return step
        }
        let isRead = try attempt { () throws(SQLiteFailure) in
            try sweep.readRange(through: revision, while: goesOn)
        }
        guard let isRead else {
            step.isDone = !sweep.beginPass()
            return step
        }
        step.isDone = false
        guard isRead, goesOn() else { return step }
        try withoutSync {
            try delete(&step) { step throws(SQLiteFailure) in
                try sweep.deleteRange(&step, while: goesOn)
            }
        }
        return step
    }

    /// Deletes what rules do not keep, or looks for it.
    ///
    /// - Returns: Whether there was anything to do.
    private func sweepRuled(
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws -> Bool {
        guard sweep.ruled.beginStretch() else {
            return try attempt { () throws(SQLiteFailure) in
                try sweep.lookAtRuled(cuts, at: age, while: goesOn)
            }
        }
        try withoutSync {
            try delete(&step) { step throws(SQLiteFailure) in
                try sweep.deleteRuledStretch(&step, while: goesOn)
            }
        }
        return true
    }

    private func delete(
        _ step: inout CompactionStep,
        _ deleteOn: (inout CompactionStep) throws(SQLiteFailure) -> Int64
    ) throws {
        var count: Int64 = 0
        do {
            try attempt { () throws(SQLiteFailure) in
                try begin(changesRows: true)
                count = try deleteOn(&step)
            }
        } catch {
            sweep.didFail()
            throw error
        }
        do {
            _ = try finishCommit(isSynced: false)
        } catch {
            sweep.didFail()
            progress.mayDrop(count)
            throw error
        }
        sweep.didCommit()
        hasRowCount = false
        progress.drop(count)
        cuts.drop(through: sweep.sweptRevision)
    }

    /// Runs `body`, whose transactions are written but not synced.
    ///
    /// If a power cut damages such a transaction, SQLite ignores it and does not report damage.
    /// https://www.sqlite.org/pragma.html#pragma_synchronous
    private func withoutSync(_ body: () throws -> Void) throws {
        try attempt { () throws(SQLiteFailure) in
            try connection.execute("PRAGMA synchronous=NORMAL")
        }
        defer {
            do {
                try connection.execute("PRAGMA synchronous=FULL")
            } catch {
                // Commits must be synced.
                unknown(error)
            }
        }
        try body()
    }

    /// Makes the compaction so far durable.
    func syncCompaction() throws { try write(compacted: sweep.compacted) }

    /// Records in `meta` that the history is complete from `revision` on, in a synced transaction.
    func write(compacted revision: Int64) throws {
        try requireNoFault()
        let isSynced = try transact { () throws(SQLiteFailure) in
            try sweep.write(compacted: revision)
        }
        // A transaction that changes nothing writes nothing and syncs nothing.
        if !isSynced { try log.sync() }
        progress.acknowledgeAll(to: log.end)
    }

    /// The bytes of free pages.
    func freeByteCount() throws(SQLiteFailure) -> Int64 {
        try connection.number("PRAGMA freelist_count") * Int64(log.pageByteCount)
    }

    // MARK: Giving pages back

    /// Rewrites the database without its free pages; needs twice the disk space of the values
    /// meanwhile.
    ///
    /// - Returns: By how many bytes database and log became smaller.
    func shrink() throws -> Int64 {
        waitForMover()
        try requireNoFault()
        let before = log.status.databaseByteCount + log.status.logByteCount
        try checkRoom()
        try attempt { () throws(SQLiteFailure) in
            // In memory, the copy would be as large as all values.
            try connection.execute("PRAGMA temp_store=FILE")
            defer { try? connection.execute("PRAGMA temp_store=MEMORY") }
            try connection.execute("VACUUM")
            try putMetaLast()
        }
        // Otherwise a header torn while the log restarts would look like damage: see
        // ``checkpoint(acknowledges:)``.
        progress.acknowledgeAll(to: log.end)
        try log.cutBack {
            try requireNoFault()
            try syncCompaction()
        }
        return before - log.status.databaseByteCount - log.status.logByteCount
    }

    /// Moves `meta` behind the view, which VACUUM writes last; see ``HistorySchema`` for why.
    private func putMetaLast() throws(SQLiteFailure) {
        try connection.transaction { () throws(SQLiteFailure) in
            for statement in [
                "CREATE TEMP TABLE kept AS SELECT * FROM main.meta", "DROP TABLE main.meta",
                HistorySchema.meta, "INSERT INTO main.meta SELECT * FROM kept", "DROP TABLE kept",
            ] { try connection.execute(statement) }
        }
    }

    private func checkRoom() throws {
        let pageCount = try attempt { () throws(SQLiteFailure) in
            try connection.number("PRAGMA page_count")
        }
        let used = pageCount * Int64(log.pageByteCount) - (try freeByteCount())
        guard let available = StoreRoom.availableByteCount(of: location.directory) else {
            throw StateError(.storage, "\(location.directory): \(lastSystemError())")
        }
        // VACUUM makes a copy in a file of its own, perhaps elsewhere, and then writes it through
        // the log.
        let needed = used * 2 + used / 16
        guard available > needed else {
            throw StateError(
                .noSpace,
                "to shrink \(location.database) takes \(needed) bytes for a while, and "
                    + "\(location.directory) has \(available): nothing was given back"
            )
        }
    }
}
