import Glibc
public import StateEngine

extension SQLiteBacking {
    /// Opens the store, makes it where it is absent, checks it and reads every row.
    ///
    /// The rows are handed out while SQLite's own check runs on another thread: where this throws, what was handed out
    /// is void. Nothing was written then, the log neither.
    ///
    /// - Parameter receive: Called for each row; the bytes in it live for that call.
    /// - Returns: The epoch, and a revision that is not below any that was acknowledged in it.
    /// - Throws: ``StateError``: ``StateError/Code/locked`` with the owner's pid, ``StateError/Code/corrupt`` with what is
    ///   damaged, ``StateError/Code/newerFormat``, or ``StateError/Code/storage``. The store is left as it is.
    /// - Complexity: O(*n*) in the bytes of the history.
    public func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        precondition(open == nil, "\(location.database) is loaded already")
        try location.prepare()
        let lock = try OwnerLock(path: location.lock, for: location.database)
        try createIfAbsent()
        try lock.hold(location.database)
        return try openStore(lock, receive)
    }

    private func openStore(
        _ lock: OwnerLock,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> LoadedStore {
        do {
            let (store, loaded) = try checkedStore(lock, receive)
            gauges.note(freeByteCount: try store.freeByteCount())
            gauges.note(store)
            gauges.note(store.files)
            gauges.note(store.log.status)
            store.room.look()
            open = store
            ownership = Ownership(lock: lock, stamp: store.progress.stamp)
            compactionGoal.finished = nil
            return loaded
        } catch let failure as SQLiteFailure {
            throw StateError.cannotOpen(location.database, failure)
        }
    }

    /// Closes the store as it is and opens it from what the disk holds, checking everything as at a start.
    ///
    /// The pages that the kernel keeps of the files are dropped first: after a failed write they may hold what the disk does
    /// not, and count as clean. https://lwn.net/Articles/752063/ (PostgreSQL's fsync surprise)
    ///
    /// Readers of the history wait for it, and begin anew (`HistoryGate`).
    ///
    /// - Parameters:
    ///   - revision: The last one that was acknowledged.
    ///   - receive: Called for each change beyond it; the bytes in it live for that call.
    /// - Returns: What it keeps beside the entries.
    /// - Throws: ``StateError``, where it cannot be opened or has lost acknowledged rows; it is not open then.
    /// - Complexity: O(*n*) in the bytes of the history.
    @discardableResult
    public func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String] {
        guard let ownership else {
            throw StateError(.storage, "\(location.database) is not open")
        }
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
            acknowledged.rowCounts = open.progress.doubtfulRowCounts
            acknowledged.compacted = open.sweep.compacted
        }
        open = nil
        for path in [location.database, location.log] { try dropCachedPages(of: path) }
        var rowCount: Int64 = 0
        let loaded = try openStore(lock) { change in
            if change.revision > revision { receive(change) } else { rowCount += 1 }
        }
        guard acknowledged.rowCounts.contains(rowCount), let open else {
            open = nil
            throw StateError.damaged(
                location.database,
                "it has \(rowCount) of the \(acknowledged.rowCounts.upperBound) rows up to revision \(revision)"
            )
        }
        // What is found will be acknowledged, so it has to be synced: the disk may have what its own cache loses.
        do {
            try open.log.sync()
            // Deletes that were compacted are not known any more: what follows them does not name them.
            try open.write(compacted: acknowledged.compacted)
        } catch {
            self.open = nil
            throw error
        }
        return loaded.metadata
    }

    private func dropCachedPages(of path: String) throws(StateError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return }
            throw StateError(.storage, "\(path) cannot be opened: \(lastSystemError())")
        }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        Glibc.close(descriptor)
    }

    private func checkedStore(
        _ lock: OwnerLock,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> (OpenStore, LoadedStore) {
        try location.requirePage()
        let acknowledged = AcknowledgedCheck(location)
        let connection = try connect(lock)
        let rows = try check(connection, lock, receive)
        try require(acknowledged, connection, revision: rows.revision)
        let metadata = try StoreMetadata(connection).metadata()
        foundPendingFileList = try StoreMetadata(connection).value(of: .pendingFiles)
        // Order matters: everything was checked, from here on the store may be written.
        StoreRoom.giveUpReserveIfFull(location)
        try useWriteAheadLog(connection)
        // Where the store is opened again, it is known to be the one that was here.
        let isFirst = ownership == nil
        let stamp = try ownership?.stamp ?? StoreStamp(path: location.stamp)
        var loaded = try identify(connection, lastRevision: rows.revision, isFirst ? stamp : nil)
        loaded.metadata = metadata
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
            progress: CommitProgress(stamp, revision: loaded.revision, rowCount: rows.rowCount)
        )
        return (store, loaded)
    }

    /// Checks that everything is there that was acknowledged.
    ///
    /// - Throws: ``StateError/Code/corrupt``, with the newest revision of both.
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

    private func createIfAbsent() throws {
        if FileIdentity(path: location.database) != nil { return }
        // A log alone is what is left of a database, and SQLite would throw it away.
        guard FileIdentity(path: location.log) == nil else {
            throw StateError.damaged(location.database, "it is missing, and its log is there")
        }
        let stamp = try StoreStamp(path: location.stamp)
        // Where there is a stamp of another store already, the new one is none that was here.
        let generation = stamp.isAbsent ? try stamp.begin(after: nil) : nil
        try HistorySchema.create(at: location, generation: generation)
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
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> (rowCount: Int64, revision: Int64, cuts: HistoryCuts) {
        try HistorySchema.check(connection)
        let metadata = StoreMetadata(connection)
        try metadata.check()
        let expected = try metadata.number(of: .rowCount)
        let compacted = try metadata.required(.compacted)
        let swept = try metadata.number(of: .swept) ?? compacted
        var cuts = HistoryCuts(history, after: swept)
        // On the other core while the rows are read here.
        let quickCheck = try QuickCheck(path: location.database, under: lock)
        let rows: (rowCount: Int64, revision: Int64)
        do {
            rows = try HistoryReader.readAll(connection) { change in
                if change.revision > swept { cuts.read(change) }
                receive(change)
            }
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
                "history has \(rows.rowCount) rows, at the last clean stop it had \(expected)"
            )
        }
        return (rows.rowCount, rows.revision, cuts)
    }

    /// A person may have switched it off, to copy the file perhaps.
    private func useWriteAheadLog(_ connection: SQLiteConnection) throws {
        guard try connection.text("PRAGMA journal_mode") != "wal" else { return }
        let mode = try connection.text("PRAGMA journal_mode=WAL")
        guard mode == "wal" else {
            throw StateError(
                .storage,
                "\(location.database) stays in journal mode '\(mode)', with which it cannot be used"
            )
        }
    }
}
