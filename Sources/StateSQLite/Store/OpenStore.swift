import CLinux
import CSQLite
import StateEngine

/// A loaded store: what commits work with between load and close.
final class OpenStore {
    let location: StoreLocation
    let log: WriteAheadLog
    let mark: StoreMark

    let connection: SQLiteConnection
    let sweep: HistorySweep
    private let writer: HistoryWriter
    let noteWriter: NoteWriter
    let begin: SQLiteStatement
    private let end: SQLiteStatement

    /// Rows of the history.
    var rowCount: Int64
    /// How many there may be where a sync fails: pieces of compaction that it should have covered are there or are not.
    var doubtfulRowCounts: ClosedRange<Int64>
    /// Whether the log ends with pieces of compaction that no sync has covered yet.
    var hasUnsyncedCompaction = false
    /// Where the last transaction that was synced ends; nil before the first.
    private var syncedEnd: AcknowledgedCommit.Log?
    /// Where the history may be cut.
    var marks: HistoryMarks
    /// Milliseconds of CLOCK_BOOTTIME.
    private let clock: @Sendable () -> Int64
    /// The last revision that was committed.
    private var revision: Int64
    /// Whether `meta` still says how many rows there are.
    var hasRowCount: Bool
    /// Why nothing may be written any more.
    private(set) var fault: StateError?
    /// Where everything is that was acknowledged.
    let files: StoreFiles
    private var commitCount = 0
    /// When all of ``files`` were asked for last, on the monotonic clock in nanoseconds.
    private var filesCheckedAt: Int64 = 0
    let room: StoreRoom
    private let pageCount: SQLiteStatement
    private let freePageCount: SQLiteStatement
    /// Keys and values of the transaction at hand, in bytes.
    private var openByteCount: Int64 = 0

    init(
        location: StoreLocation,
        connection: SQLiteConnection,
        log: WriteAheadLog,
        mark: StoreMark,
        marks: HistoryMarks,
        room: StoreRoom,
        clock: @escaping @Sendable () -> Int64,
        rowCount: Int64,
        revision: Int64,
        hasRowCount: Bool
    ) throws {
        self.location = location
        self.connection = connection
        self.log = log
        self.mark = mark
        files = StoreFiles(location)
        self.room = room
        self.marks = marks
        self.clock = clock
        sweep = try HistorySweep(connection)
        self.rowCount = rowCount
        doubtfulRowCounts = rowCount...rowCount
        self.revision = revision
        self.hasRowCount = hasRowCount
        writer = try HistoryWriter(connection)
        noteWriter = try NoteWriter(connection)
        begin = try connection.prepare("BEGIN IMMEDIATE")
        end = try connection.prepare("COMMIT")
        pageCount = try connection.prepare("PRAGMA page_count")
        freePageCount = try connection.prepare("PRAGMA freelist_count")
    }

    func commit(
        rowCount appendedCount: Int,
        notes: [Note],
        fileMark: FileMarkChange = .keep,
        _ source: ((borrowing StoredChange) throws -> Void) throws -> Void
    ) throws {
        if let fault { throw fault }
        try log.requireRoom()
        var last = revision
        var isFirst = true
        let before = marks
        let now = clock()
        openByteCount = 0
        defer { openByteCount = 0 }
        writer.begin(rowCount: appendedCount)
        do {
            try begin.run()
            if hasRowCount { try StoreMetadata(connection).remove(.rowCount) }
            try source { change in
                precondition(
                    change.revision > last || (change.revision == last && !isFirst),
                    "revision \(change.revision) is committed after \(last)"
                )
                last = change.revision
                isFirst = false
                marks.take(change, at: now)
                openByteCount += Int64(change.key.count + (change.value?.count ?? 0))
                try writer.append(change)
            }
            if let note = notes.last {
                try noteWriter.write(notes)
                last = max(last, note.revision)
            }
            try noteWriter.write(fileMark)
        } catch {
            marks = before
            try abandon(error)
        }
        precondition(writer.isComplete, "a commit has fewer changes than it was said to have")
        let isSynced: Bool
        do {
            isSynced = try finishCommit()
        } catch {
            marks = before
            throw error
        }
        try requireFiles()
        hasRowCount = false
        rowCount += Int64(appendedCount)
        if isSynced {
            hasUnsyncedCompaction = false
            doubtfulRowCounts = rowCount...rowCount
        }
        revision = last
        noteEnd()
        if room.isWatched { lookForRoom() }
    }

    /// Writes to the mark that everything up to here is stored and synced.
    ///
    /// After the sync, never before: what the mark says is acknowledged has to be there after any crash.
    func noteEnd() {
        mark.acknowledged = AcknowledgedCommit(
            revision: revision,
            log: syncedEnd ?? mark.acknowledged.log
        )
    }

    /// What was committed into files that were removed or replaced meanwhile is not acknowledged.
    private func requireFiles() throws {
        commitCount &+= 1
        // Without the mark less would be noticed, and nothing lost.
        let now = clinux_monotonic_nanoseconds()
        let isWhole = commitCount % 64 == 0 || now - filesCheckedAt > 1_000_000_000
        if isWhole { filesCheckedAt = now }
        guard let finding = isWhole ? files.finding : files.commitFinding else { return }
        let lost = StateError(.readOnly, "\(StateError.unknownOutcome): \(finding)")
        fault = lost
        throw lost
    }

    /// COMMIT: the one statement whose failure can leave unknown what is on disk.
    ///
    /// A transaction that wrote nothing is not synced, and says nothing of those before it that were not.
    ///
    /// - Returns: Whether all of the log is on stable storage now.
    @discardableResult
    func finishCommit(isSynced: Bool = true) throws -> Bool {
        let before = log.end
        do {
            try end.run()
            guard isSynced, log.end != before else { return false }
            syncedEnd = log.end
            return true
        } catch {
            // The log has no room for the last page of the transaction, the one that makes it whole.
            if error.primaryCode == SQLITE_FULL || error.primaryCode == SQLITE_BUSY {
                try abandon(error)
                return false
            }
            let unknown = unknown(error)
            rollBack()
            throw unknown
        }
    }

    /// Moves the log into the database, as far as it can be.
    ///
    /// What is moved is acknowledged first. Else a start would not miss the end of a damaged log, and its older pages would lie over
    /// newer ones of the database; nor would it know the pages again if the header were torn as the log was begun anew.
    ///
    /// Where a sync fails, the kernel may drop what it was to make safe, and the next sync says nothing of it. Of a transaction that
    /// was not told, as a piece of compaction is, nobody would know: what is appended behind the hole counts for nothing at the
    /// next start, and a page that is read back from it is an old one. So the store has to be opened anew.
    ///
    /// - Parameter acknowledges: False if a transaction has just failed for want of room, which a checkpoint may make.
    func checkpoint(acknowledges: Bool = true) {
        room.makeWay(use)
        if acknowledges, hasUnsyncedCompaction { log.withoutWaiting { try? syncCompaction() } }
        if let fault { return log.note(fault.message) }
        var failure = log.checkpoint()
        if log.isDatabaseFull, room.noteFull(use, byteCount: 0) { failure = log.checkpoint() }
        lookForRoom()
        guard hasUnsyncedCompaction else { return }
        if let failure {
            _ = unknown(failure)
        } else if log.isMoved {
            // It has synced the log before.
            noteSynced()
        }
    }

    /// All of the log is on stable storage, pieces of compaction too.
    func noteSynced() {
        syncedEnd = log.end
        hasUnsyncedCompaction = false
        doubtfulRowCounts = rowCount...rowCount
        noteEnd()
    }

    /// Looks whether the disk has room for more than deletes.
    func lookForRoom() { room.look(use) }

    private var use: StoreUse {
        let page = Int64(HistorySchema.pageByteCount)
        let byteCount = count(pageCount) * page
        return StoreUse(
            growthByteCount: max(0, byteCount - log.status.databaseByteCount),
            freeByteCount: count(freePageCount) * page
        )
    }

    /// The number that a statement yields; 0 if it fails, as it does where nothing can be read.
    private func count(_ statement: SQLiteStatement) -> Int64 {
        defer { statement.reset() }
        guard (try? statement.step()) == true else { return 0 }
        return statement.number(at: 0)
    }

    /// The log may hold the transaction whole although its sync failed, and a start would then find it: nothing more may be
    /// written before that has been looked at.
    func unknown(_ failure: SQLiteFailure) -> StateError {
        let unknown = StateError(
            .readOnly,
            "\(StateError.unknownOutcome): \(location.database): \(failure)"
        )
        fault = unknown
        return unknown
    }

    /// Ends a transaction before its COMMIT: nothing of it was committed.
    func abandon(_ error: any Error) throws {
        rollBack()
        guard let failure = error as? SQLiteFailure else { throw error }
        switch failure.primaryCode {
        case SQLITE_FULL:
            // This transaction fails; the next one has the room.
            if room.noteFull(use, byteCount: openByteCount) { checkpoint(acknowledges: false) }
            throw StateError(.noSpace, "the disk of \(location.database) is full: \(failure)")
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

    private func rollBack() {
        guard connection.isInTransaction else { return }
        do {
            try connection.execute("ROLLBACK")
        } catch  where fault == nil {
            fault = StateError(.readOnly, "\(location.database) cannot be written: \(error)")
        } catch {
            // The fault that is known already says more.
        }
    }

    /// How many rows there are, and another generation: a copy that was made while the store was open is older than it.
    private func recordStop() throws {
        let metadata = StoreMetadata(connection)
        let generation = try mark.begin(after: metadata.generation())
        try connection.execute("BEGIN IMMEDIATE")
        try metadata.set(.rowCount, "\(rowCount)")
        try metadata.set(.generation, "\(generation)")
        try connection.execute("COMMIT")
        syncedEnd = log.end
        noteEnd()
        hasUnsyncedCompaction = false
        try mark.settle(generation)
    }

    /// Ends cleanly, as far as the disk allows; what it did not allow is in the status.
    func finish() -> StorageStatus {
        guard fault == nil else { return log.status }
        // What is there by now under their names is not ours to write to.
        guard files.finding == nil else { return log.status }
        var unrecorded: (any Error)?
        do {
            try recordStop()
        } catch {
            rollBack()
            unrecorded = error
        }
        if let unrecorded { log.note("a clean stop could not be recorded: \(unrecorded)") }
        // Its sync may have failed, which should have covered compaction too: see ``checkpoint()``.
        if unrecorded != nil, hasUnsyncedCompaction { return log.status }
        // Closing the connection takes the log away, which, unlike cutting it to nothing, a loss of power does not do by half.
        checkpoint()
        if unrecorded == nil, log.isMoved {
            mark.acknowledged = AcknowledgedCommit(revision: revision)
        }
        if let unrecorded { log.note("a clean stop could not be recorded: \(unrecorded)") }
        if fault == nil { connection.checkpointsOnClose() }
        return log.status
    }
}
