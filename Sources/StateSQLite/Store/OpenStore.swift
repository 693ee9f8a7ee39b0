import CSQLite
import StateEngine

/// A loaded store: the state that commits use between load and close.
final class OpenStore {
    let location: StoreLocation
    let connection: SQLiteConnection
    let log: WriteAheadLog
    let room: StoreRoom
    let statements: Statements
    /// Milliseconds of CLOCK_BOOTTIME.
    private let clock: @Sendable () -> Int64

    let sweep: HistorySweep
    /// Whether there were rules of the history since it was opened.
    var hasRules = false
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
    var fault: StateError?

    /// The statements of a commit.
    struct Statements {
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

    /// The age of the history, in milliseconds.
    var age: Int64 { cuts.age(at: clock()) }

    /// Throws if nothing may be written any more.
    func requireNoFault() throws {
        if let fault { throw fault }
        if let loss = log.partLoss { throw unknown(loss) }
    }

    // MARK: Commits

    /// Appends rows, and writes metadata, in one transaction with one sync.
    func commit(
        rowCount: Int,
        metadata: [MetadataEntry],
        pendingFileList: PendingFileListChange = .keep,
        _ source: ((borrowing StoredChange) throws -> Void) throws -> Void
    ) throws {
        if log.isFull { waitForMover() }
        try requireNoFault()
        try log.requireRoom()
        let (before, end) = (cuts, sweep.retained.end)
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
            sweep.retained.cutBack(to: end)
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
                sweep.retained.append(change)
            }
            if let last = metadata.last {
                try statements.metadata.write(metadata)
                written.revision = max(written.revision, last.revision)
            }
            switch pendingFileList {
            case .keep: break
            case .set(let text): try statements.metadata.write(.pendingFiles, text)
            case .remove: try statements.metadata.write(.pendingFiles, nil)
            }
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

    /// Moves the log into the database once it is long enough.
    ///
    /// Most of it is moved on another thread while commits go on, and the rest once that has ended:
    /// then the next commit begins the log anew.
    ///
    /// - Complexity: For the rest, a write for each page and two syncs.
    func maintainLog() {
        if let result = mover?.take() {
            didMove(result)
        } else if log.isCheckpointDue, mover.map({ !$0.isMoving }) ?? true, !beginMoving() {
            checkpoint()
        }
    }
}

/// How far a store is committed, and how much of that is on stable storage and acknowledged.
///
/// A step of compaction is committed without its own sync: until the next sync it is unknown
/// whether its rows are gone.
struct CommitProgress {
    /// The stamp of the store, with the newest acknowledged commit.
    let stamp: StoreStamp
    /// The last committed revision.
    private(set) var revision: Int64
    /// Rows of the history.
    private(set) var rowCount: Int64
    /// The possible numbers of rows if a sync fails: the steps of compaction that it should have
    /// covered may be lost.
    private(set) var doubtfulRowCounts: ClosedRange<Int64>
    /// Whether the log ends with steps of compaction that no sync has covered yet.
    private(set) var hasUnsyncedCompaction = false
    /// The end of the last synced transaction; nil before the first.
    private var syncedEnd: AcknowledgedCommit.Log?

    init(_ stamp: StoreStamp, revision: Int64, rowCount: Int64) {
        self.stamp = stamp
        self.revision = revision
        self.rowCount = rowCount
        doubtfulRowCounts = rowCount...rowCount
    }

    /// Rows were committed, to files that still have their names; if `isSynced`, all of the log is
    /// on stable storage.
    mutating func append(_ count: Int, through revision: Int64, isSynced: Bool) {
        rowCount += Int64(count)
        self.revision = revision
        if isSynced { forgetDoubts() }
        acknowledge()
    }

    /// Rows were removed, in a transaction that was not synced.
    mutating func drop(_ count: Int64) {
        rowCount -= count
        hasUnsyncedCompaction = true
        doubtfulRowCounts = rowCount...doubtfulRowCounts.upperBound
    }

    /// Rows may have been removed, or not.
    mutating func mayDrop(_ count: Int64) {
        doubtfulRowCounts = rowCount - count...doubtfulRowCounts.upperBound
    }

    /// A transaction synced the log up to here; it is not acknowledged yet.
    mutating func noteSync(to end: AcknowledgedCommit.Log?) { syncedEnd = end }

    /// All of the log is on stable storage, including steps of compaction.
    mutating func acknowledgeAll(to end: AcknowledgedCommit.Log?) {
        syncedEnd = end
        forgetDoubts()
        acknowledge()
    }

    /// Records in the stamp that everything up to here is stored and synced.
    ///
    /// Always after the sync: what the stamp records must survive any crash.
    func acknowledge() {
        stamp.acknowledged = AcknowledgedCommit(
            revision: revision,
            log: syncedEnd ?? stamp.acknowledged.log
        )
    }

    /// The same once everything is in the database, and the log is about to be removed.
    func acknowledgeWithoutLog() { stamp.acknowledged = AcknowledgedCommit(revision: revision) }

    private mutating func forgetDoubts() {
        hasUnsyncedCompaction = false
        doubtfulRowCounts = rowCount...rowCount
    }
}
