import CSQLite
import StateEngine

/// A loaded store: the state that commits use between load and close.
final class OpenStore {
    let location: StoreLocation
    let connection: SQLiteConnection
    let log: WriteAheadLog
    let room: StoreRoom
    private let statements: Statements
    /// Milliseconds of CLOCK_BOOTTIME.
    private let clock: @Sendable () -> Int64

    let sweep: HistorySweep
    /// The places at which the history may be cut.
    var cuts: HistoryCuts
    var progress: CommitProgress
    /// Whether `meta` still contains the number of rows.
    var hasRowCount: Bool
    /// Checks the files that contain what was acknowledged.
    private var fileCheck: FileCheck
    /// Moves the log while commits go on; nil before the first time.
    var mover: LogMover?
    /// Why nothing may be written any more.
    private(set) var fault: StateError?

    /// The statements of a commit.
    private struct Statements {
        let begin: SQLiteStatement
        let end: SQLiteStatement
        let rows: HistoryWriter
        let metadata: MetadataWriter

        init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
            begin = try connection.prepare("BEGIN IMMEDIATE")
            end = try connection.prepare("COMMIT")
            rows = try HistoryWriter(connection)
            metadata = try MetadataWriter(connection)
        }
    }

    init(
        location: StoreLocation,
        connection: SQLiteConnection,
        log: WriteAheadLog,
        cuts: HistoryCuts,
        room: StoreRoom,
        clock: @escaping @Sendable () -> Int64,
        progress: CommitProgress,
        loaded: LoadedRows
    ) throws {
        self.location = location
        self.connection = connection
        self.log = log
        self.room = room
        self.cuts = cuts
        self.clock = clock
        self.progress = progress
        hasRowCount = try StoreMetadata(connection).value(of: .rowCount) != nil
        fileCheck = FileCheck(StoreFiles(location))
        sweep = try HistorySweep(connection, loaded)
        statements = try Statements(connection)
    }

    deinit { _ = mover?.wait() }

    var files: StoreFiles { fileCheck.files }

    /// Throws if nothing may be written any more.
    func requireNoFault() throws {
        if let fault { throw fault }
    }

    // MARK: Commits

    /// Appends rows, and writes metadata, in one transaction with one sync.
    func commit(
        rowCount: Int,
        metadata: [MetadataEntry],
        pendingFileList: PendingFileListChange = .keep,
        _ source: ((borrowing StoredChange) throws -> Void) throws -> Void
    ) throws {
        try requireNoFault()
        if log.isFull { waitForMover() }
        try log.requireRoom()
        let before = cuts
        var written = Written(revision: progress.revision)
        let isSynced: Bool
        do {
            try write(
                &written,
                rowCount: rowCount,
                metadata: metadata,
                pendingFileList: pendingFileList,
                source
            )
            isSynced = try finishCommit(byteCount: written.byteCount)
        } catch {
            cuts = before
            throw error
        }
        try requireFiles()
        hasRowCount = false
        progress.append(rowCount, through: written.revision, isSynced: isSynced)
        if room.isWatched { room.look() }
    }

    /// What a transaction contains so far.
    private struct Written {
        var revision: Int64
        var hasChanges = false
        /// The size of keys and values, in bytes.
        var byteCount: Int64 = 0

        mutating func add(_ change: borrowing StoredChange) {
            let next = change.revision
            precondition(
                next > revision || (next == revision && hasChanges),
                "revision \(next) is committed after \(revision)"
            )
            revision = next
            hasChanges = true
            byteCount += Int64(change.key.count + (change.value?.count ?? 0))
        }
    }

    private func write(
        _ written: inout Written,
        rowCount: Int,
        metadata: [MetadataEntry],
        pendingFileList: PendingFileListChange,
        _ source: ((borrowing StoredChange) throws -> Void) throws -> Void
    ) throws {
        let now = clock()
        statements.rows.begin(rowCount: rowCount)
        do {
            try begin(changesRows: true)
            try source { change in
                written.add(change)
                cuts.take(change, at: now)
                try statements.rows.append(change)
            }
            try statements.metadata.write(metadata)
            written.revision = max(written.revision, metadata.last?.revision ?? 0)
            try statements.metadata.write(pendingFileList)
        } catch {
            try abandon(error, byteCount: written.byteCount)
        }
        precondition(
            statements.rows.isComplete,
            "a commit has fewer changes than announced"
        )
    }

    /// Begins a transaction; if it changes rows, removes the number of rows from `meta`.
    func begin(changesRows: Bool) throws(SQLiteFailure) {
        try statements.begin.run()
        if changesRows, hasRowCount { try StoreMetadata(connection).remove(.rowCount) }
    }

    /// Writes metadata in its own transaction.
    func write(_ body: (MetadataWriter) throws(SQLiteFailure) -> Void) throws {
        _ = try transact { () throws(SQLiteFailure) in try body(statements.metadata) }
        progress.acknowledge()
    }

    /// Runs `body` in its own transaction.
    ///
    /// - Returns: Whether all of the log is on stable storage now.
    func transact(_ body: () throws(SQLiteFailure) -> Void) throws -> Bool {
        try attempt { () throws(SQLiteFailure) in
            try begin(changesRows: false)
            try body()
        }
        return try finishCommit()
    }

    /// Commits to files that were removed or replaced meanwhile are not acknowledged.
    private func requireFiles() throws {
        guard let finding = fileCheck.findingAfterCommit() else { return }
        let lost = StateError(.readOnly, "\(StateError.unknownOutcome): \(finding)")
        fault = lost
        throw lost
    }

    /// COMMIT: the only statement whose failure can leave it unknown what is on disk.
    ///
    /// A transaction that wrote nothing is not synced, and does not prove that earlier ones were.
    ///
    /// - Parameters:
    ///   - isSynced: False without a sync.
    ///   - byteCount: The size of the transaction's keys and values.
    /// - Returns: Whether all of the log is on stable storage now.
    /// - Throws: Why nothing was committed, or that the outcome is unknown.
    func finishCommit(isSynced: Bool = true, byteCount: Int64 = 0) throws -> Bool {
        let before = log.end
        do {
            try statements.end.run()
            guard isSynced, log.end != before else { return false }
            progress.noteSync(to: log.end)
            return true
        } catch {
            // The log has no room for the last page of the transaction, which completes it.
            if error.primaryCode == SQLITE_FULL || error.primaryCode == SQLITE_BUSY {
                try abandon(error, byteCount: byteCount)
            }
            let unknown = unknown(error)
            rollBack()
            throw unknown
        }
    }

    // MARK: Failures

    /// Runs `body`, which starts no transaction or fails in an open one.
    func attempt<R>(_ body: () throws(SQLiteFailure) -> R) throws -> R {
        do {
            return try body()
        } catch {
            try abandon(error)
        }
    }

    /// The log may contain the complete transaction although its sync failed, and a start would
    /// then find it: nothing more may be written until the store is reopened.
    @discardableResult
    func unknown(_ failure: SQLiteFailure) -> StateError {
        let unknown = StateError(
            .readOnly,
            "\(StateError.unknownOutcome): \(location.database): \(failure)"
        )
        fault = unknown
        return unknown
    }

    /// Ends a transaction, with `byteCount` of keys and values, before its COMMIT: nothing of it
    /// was committed.
    private func abandon(_ error: any Error, byteCount: Int64 = 0) throws -> Never {
        rollBack()
        guard let failure = error as? SQLiteFailure else { throw error }
        switch failure.primaryCode {
        case SQLITE_FULL:
            // This transaction fails; the next one has the room.
            if room.noteFull(byteCount: byteCount) { checkpoint(acknowledges: false) }
            throw StateError(
                .noSpace,
                "disk full: writes to \(location.database) are refused until there is room "
                    + "(\(failure))"
            )
        case SQLITE_BUSY:
            let holder = LockHolder.description(
                of: location.logIndex,
                bytes: LockHolder.writerBytes
            )
            throw StateError(
                .readOnly,
                "\(holder) holds the write lock of \(location.database): nothing was committed"
            )
        case SQLITE_NOMEM:
            throw StateError(
                .readOnly,
                "nothing was committed: \(location.database): \(failure)"
            )
        default: throw unknown(failure)
        }
    }

    func rollBack() {
        guard connection.isInTransaction else { return }
        do {
            try connection.execute("ROLLBACK")
        } catch  where fault == nil {
            fault = StateError(.readOnly, "\(location.database) cannot be written: \(error)")
        } catch {
            // The known fault says more.
        }
    }
}
