public import StateEngine
import StatePlatform
import StateSystem

extension SQLiteBacking {
    /// Opens the store, creates it if it is missing, checks it and reads every row.
    ///
    /// The rows are passed on while SQLite's own check runs on another thread: if this throws, they
    /// are void. Nothing was written then, not even the log.
    ///
    /// - Parameter receive: Called for each row; the bytes are valid only during that call.
    /// - Returns: The epoch, and a revision that is not below any that was acknowledged in it.
    /// - Throws: ``StateError``: ``StateError/Code/locked`` with the owner's pid,
    ///   ``StateError/Code/corrupt`` with the damaged part, ``StateError/Code/newerFormat``, or
    ///   ``StateError/Code/storage``. The store is unchanged.
    /// - Complexity: O(*n*) in the bytes of the history.
    public func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        try load(lookingAhead: SQLiteBacking.notLooking, receive)
    }

    private static func notLooking(ahead changes: ArraySlice<StoredChange>) {}

    package func load(
        lookingAhead lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> LoadedStore {
        precondition(open == nil, "\(location.database) is loaded already")
        try location.prepare()
        let lock = try OwnerLock(path: location.lock, for: location.database)
        try createIfAbsent()
        try lock.hold(location.database)
        return try openStore(lock, lookAhead, receive)
    }

    private func openStore(
        _ lock: OwnerLock,
        _ lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> LoadedStore {
        do {
            let (store, loaded) = try checkedStore(lock, lookAhead, receive)
            gauges.note(freeByteCount: try store.freeByteCount())
            gauges.note(store)
            gauges.note(store.files)
            gauges.note(store.log.status)
            store.room.look()
            open = store
            ownership = Ownership(lock: lock, stamp: store.progress.stamp)
            compactionGoal.finished = nil
            compactionGoal.isAsked = false
            return loaded
        } catch let failure as SQLiteFailure {
            throw StateError.cannotOpen(location.database, failure)
        }
    }

    /// Closes the store without changes and reopens it from disk, with all checks of a start.
    ///
    /// The kernel's cached pages of the files are dropped first: after a failed write they may
    /// differ from the disk and still count as clean. https://lwn.net/Articles/752063/
    /// (PostgreSQL's fsync surprise)
    ///
    /// Readers of the history wait for it, and start again (`HistoryGate`).
    ///
    /// - Parameters:
    ///   - revision: The last acknowledged revision.
    ///   - receive: Called for each change after it; the bytes are valid only during that call.
    /// - Returns: The metadata of the store.
    /// - Throws: ``StateError``, if a file of the store is missing or replaced, or if it cannot be
    ///   opened or has lost acknowledged rows; it is not open then.
    /// - Complexity: O(*n*) in the bytes of the history.
    @discardableResult
    public func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String] {
        guard let ownership else {
            throw StateError(.storage, "\(location.database) is not open")
        }
        if let fileFinding { throw StateError(.storage, fileFinding) }
        return try inTurn {
            try gate.whileShut { try reopen(ownership.lock, after: revision, receive) }
        }
    }

    private func reopen(
        _ lock: OwnerLock,
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String] {
        if let open {
            found.rowCounts = open.progress.doubtfulRowCounts
            found.compacted = open.sweep.compacted
        }
        open = nil
        for path in [location.database, location.log] {
            try StoreLocation.dropCachedPages(of: path)
        }
        var rowCount: Int64 = 0
        let loaded = try openStore(lock, SQLiteBacking.notLooking) { change in
            if change.revision > revision { receive(change) } else { rowCount += 1 }
        }
        guard found.rowCounts.contains(rowCount), let open else {
            open = nil
            throw StateError.damaged(
                location.database,
                "it has \(rowCount) of the \(found.rowCounts.upperBound) rows "
                    + "up to revision \(revision)"
            )
        }
        // What is found will be acknowledged, so it must be synced: it may be only in the disk's
        // own cache.
        do {
            try open.log.sync()
            // Compacted deletes are no longer known: the changes after them do not refer to them.
            try open.write(compacted: found.compacted)
        } catch {
            self.open = nil
            throw error
        }
        return loaded.metadata
    }

    private func checkedStore(
        _ lock: OwnerLock,
        _ lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> (OpenStore, LoadedStore) {
        try location.requirePage()
        let acknowledged = AcknowledgedCheck(location)
        let connection = try connect(lock)
        var rows = try check(connection, lock, lookAhead, receive)
        try require(acknowledged, connection, revision: rows.revision)
        let facts = StoreMetadata(connection)
        let metadata = try facts.metadata()
        found.pendingFileList = try facts.value(of: .pendingFiles)
        // Order matters: everything was checked, from here on the store may be written.
        //
        // Another process that reads keeps count of what was moved, also by a process that was
        // killed before it had synced that. The first commit may restart the log.
        try connection.sync()
        StoreRoom.giveUpReserveIfFull(location)
        try useWriteAheadLog(connection)
        // A store that is reopened is known to be the same one.
        let isFirst = ownership == nil
        let stamp = try ownership?.stamp ?? StoreStamp(path: location.stamp)
        let (epoch, generation) = (try facts.epoch(), try facts.generation())
        var loaded = try identify(connection, lastRevision: rows.revision, isFirst ? stamp : nil)
        loaded.metadata = metadata
        if isFirst, loaded.epoch == epoch {
            // Before the next generation: until then it can be done again.
            try recover(deferrals.left(by: generation), connection, &rows, &loaded, receive)
        }
        let log = try WriteAheadLog(location, limits: logLimits, connection: connection)
        if isFirst { try beginGeneration(connection, stamp, log, at: loaded.revision) }
        try log.preallocate()
        let store = try OpenStore(
            location: location,
            connection: connection,
            log: log,
            cuts: rows.cuts,
            room: StoreRoom(location, reserveByteCount: reserveByteCount, connection, log),
            clock: clock,
            progress: CommitProgress(stamp, revision: loaded.revision, rowCount: rows.rowCount),
            loaded: rows.loaded
        )
        if isFirst { deferrals.begin(try facts.generation() ?? 0) }
        return (store, loaded)
    }

    /// Checks that everything acknowledged is there.
    ///
    /// - Throws: ``StateError/Code/corrupt``, with the newest revisions of the store and of the
    ///   stamp.
    private func require(
        _ acknowledged: AcknowledgedCheck,
        _ connection: SQLiteConnection,
        revision: Int64
    ) throws {
        let metadata = StoreMetadata(connection)
        let finding = try acknowledged.finding(
            metadata,
            ownership?.stamp ?? StoreStamp(reading: location.stamp),
            revision: try metadata.lastRevision(ofRows: revision),
            readsLog: true
        )
        if let finding { throw StateError.damaged(location.database, finding) }
    }

    private func connect(_ lock: OwnerLock) throws -> SQLiteConnection {
        let connection = try SQLiteConnection(path: location.database, under: lock)
        try HistorySchema.checkHeader(of: connection)
        guard !connection.isReadOnly else {
            throw StateError(.storage, "\(location.database) is not writable")
        }
        try connection.set(
            "synchronous=FULL",
            "wal_autocheckpoint=0",
            "secure_delete=OFF",
            "temp_store=MEMORY",
            "cache_size=-4096",
            "trusted_schema=OFF"
        )
        return connection
    }

    private func check(
        _ connection: SQLiteConnection,
        _ lock: OwnerLock,
        _ lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> FoundRows {
        try HistorySchema.check(connection)
        let metadata = StoreMetadata(connection)
        try metadata.check()
        let expected = try metadata.number(of: .rowCount)
        let compacted = try metadata.required(.compacted)
        var cuts = HistoryCuts(history, after: compacted)
        // If the store is opened again, its keyspace has the values already.
        let (isComplete, limit) = (ownership == nil, logLimits.stretchRowCount)
        let loaded = LoadedRows(compacted: compacted, isComplete: isComplete, rowLimit: limit)
        found.rows = loaded
        defer { found.rows = nil }
        loading.begin(expecting: expected)
        // Runs on another core while this thread reads the rows.
        let quickCheck = try QuickCheck(path: location.database, under: lock)
        let rows: HistoryReader.Summary
        do {
            rows = try HistoryReader.readAll(
                connection,
                compacted: compacted,
                lookingAhead: lookAhead
            ) { change in
                if change.revision > compacted { cuts.read(change) }
                loaded.read(change)
                receive(change)
                loading.noteRow()
            }
            loaded.retained = rows.retained
        } catch {
            quickCheck.cancel()
            throw error
        }
        cuts.finishReading(at: LocalKeyspace.now(), boottime: clock())
        if let finding = try quickCheck.finish() {
            throw StateError.damaged(location.database, finding)
        }
        if let expected, expected != rows.rowCount {
            throw StateError.damaged(
                location.database,
                "history has \(rows.rowCount) rows; at the last clean stop it had \(expected)"
            )
        }
        return FoundRows(
            rowCount: rows.rowCount,
            revision: rows.revision,
            cuts: cuts,
            loaded: loaded
        )
    }

    /// Somebody may have switched it off, for instance to copy the file.
    private func useWriteAheadLog(_ connection: SQLiteConnection) throws {
        guard try connection.text("PRAGMA journal_mode") != "wal" else { return }
        let mode = try connection.text("PRAGMA journal_mode=WAL")
        guard mode == "wal" else {
            throw StateError(
                .storage,
                "\(location.database) cannot be switched from journal mode '\(mode)' to WAL"
            )
        }
    }

    /// Records the number of rows, empties the log, closes the database and releases the lock.
    ///
    /// If something is deferred that the store has refused, it is left as after a crash: the next
    /// load stores that.
    ///
    /// If files of the store were removed or replaced meanwhile, nothing is written to the files
    /// that now have their names, and `reports.lossAtClose` reports it.
    public func close() {
        let wasLoaded = ownership != nil
        ownership = nil
        found.leftDeferred = deferrals.leftAtTheEnd
        inTurn {
            guard let closing = open else {
                if wasLoaded {
                    reports.lossAtClose =
                        fileFinding ?? "\(location.database) could not be opened again"
                }
                return
            }
            open = nil
            reports.lossAtClose = fileFinding
            guard found.leftDeferred == .nothing else { return }
            gauges.note(closing.finish())
            deferrals.end()
        }
    }
}
