import CLinux
import CSQLite
import StateEngine
import StatePlatform
import StateSystem

/// The write-ahead log of a store and its checkpoints.
///
/// The checkpoints are not SQLite's automatic ones: those run inside COMMIT, before replies can be
/// sent, and COMMIT returns success when their sync fails. PASSIVE is enough: if every page was
/// moved and no reader uses the log, the next transaction restarts it at its beginning.
/// https://www.sqlite.org/wal.html#ckpt
///
/// The file is created at its full length, because a commit into a growing file also waits for the
/// file system's journal.
final class WriteAheadLog {
    private let location: StoreLocation
    private let limits: LogLimits
    /// Not a strong cycle: the connection knows this object only by address, and retains none of
    /// ours.
    private let connection: SQLiteConnection
    private let frameByteCount: Int

    /// The frames of the log in use after the last commit, as SQLite counts them.
    private(set) var frameCount = 0
    /// The frame count at which the next checkpoint is due.
    private var dueFrameCount: Int
    /// Whether all of the log has been in the database since it was last restarted.
    private var wasMoved = false
    /// Whether all of the log is in the database.
    private(set) var isMoved = false
    /// Why pages that count as moved may be old in the database, until the store is reopened.
    private(set) var partLoss: SQLiteFailure?
    private(set) var status = StorageStatus()
    /// Whether the last checkpoint had no room to extend the database.
    private(set) var isDatabaseFull = false

    /// The log itself, for reading frame headers only; -1 if it cannot be opened.
    private let descriptor: Int32
    private let file: FileIdentity?
    /// The salts of the last frame in use.
    private var salts: UInt64?

    init(
        _ location: StoreLocation,
        limits: LogLimits,
        connection: SQLiteConnection
    )
        throws(SQLiteFailure)
    {
        self.location = location
        self.limits = limits
        self.connection = connection
        // A frame is a page and 24 bytes: https://www.sqlite.org/fileformat2.html#walformat
        frameByteCount =
            Int(try connection.number("PRAGMA page_size")) + LogPosition.frameHeaderByteCount
        dueFrameCount = limits.checkpointByteCount / frameByteCount
        // SQLite has no locks on the log itself that closing this descriptor would drop.
        descriptor = (try? NamedFile.open(location.log, O_RDONLY | O_NOFOLLOW)) ?? -1
        file = FileIdentity(path: location.log)
        try connection.execute("PRAGMA journal_size_limit=\(limits.keptByteCount)")
        connection.waitForLocks(limits.lockWait)
        sqlite3_wal_hook(
            connection.handle,
            { context, _, _, frames in
                guard let context else { return SQLITE_OK }
                Unmanaged<WriteAheadLog>.fromOpaque(context).takeUnretainedValue()
                    .didCommit(frameCount: Int(frames))
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        noteSizes()
    }

    deinit {
        sqlite3_wal_hook(connection.handle, nil, nil)
        if descriptor >= 0 { StatePlatform.close(descriptor) }
    }

    private func didCommit(frameCount frames: Int) {
        // A log that only grew has kept its salts; once it was moved, a commit may restart it. If
        // another process has done both, the recorded salts are of a log that is gone, and are
        // ignored at the next start.
        let hasGrown = frames > frameCount && frameCount > 0 && !wasMoved && !isMoved
        let salts = hasGrown ? self.salts : salts(ofFrame: frames)
        if frames <= frameCount || salts != self.salts {
            // Restarted: whatever blocked the checkpoint is gone. A long log was truncated.
            didRestart()
            noteSizes()
        }
        isMoved = false
        frameCount = frames
        self.salts = salts
        status.logByteCount = Swift.max(status.logByteCount, Int64(byteCount))
    }

    /// The end of the last commit, and the identity of the log; nil before the first commit, and if
    /// the log cannot be read.
    ///
    /// The salts are those of the commit's own log, even if another process restarts the log
    /// meanwhile.
    var end: AcknowledgedCommit.Log? {
        guard let salts, let file, frameCount > 0 else { return nil }
        return AcknowledgedCommit.Log(
            position: LogPosition(frameCount: frameCount, salts: salts),
            file: file
        )
    }

    private func salts(ofFrame number: Int) -> UInt64? {
        let offset = LogPosition.offset(ofFrame: number, pageByteCount: pageByteCount)
        var salts: UInt64 = 0
        let count = MemoryLayout<UInt64>.size
        return pread(descriptor, &salts, count, off_t(offset + LogPosition.frameSaltsOffset))
            == count
            ? salts : nil
    }

    private func didRestart() {
        wasMoved = false
        dueFrameCount = limits.checkpointByteCount / frameByteCount
        status.checkpointFailure = nil
    }

    /// The page size of this database, which an earlier version may have made.
    var pageByteCount: Int { frameByteCount - LogPosition.frameHeaderByteCount }

    /// The size of the log in use, in bytes.
    private var byteCount: Int { frameCount * frameByteCount + 32 }

    /// The initial size of the file: a checkpoint comes slightly after it is due.
    private var preallocatedByteCount: Int {
        limits.checkpointByteCount + limits.checkpointByteCount / 8
    }

    /// Whether the log is long enough for a checkpoint.
    var isCheckpointDue: Bool { frameCount >= dueFrameCount }

    /// Whether most of the log is moved on another thread.
    var movesAside: Bool { limits.movesAside }

    /// Whether the rest of the log is to be moved on another thread, too.
    ///
    /// A commit would have to wait long for it. Not if the log has become twice as long meanwhile.
    func isRestLong(after movedFrameCount: Int) -> Bool {
        (frameCount - movedFrameCount) * frameByteCount > limits.checkpointByteCount / 8
            && movedFrameCount > frameCount / 2 && byteCount < limits.checkpointByteCount * 2
    }

    /// Whether it is at its limit: commits are refused until it can be moved.
    var isFull: Bool { byteCount >= limits.byteCount }

    /// Whether optional work should wait: the log has reached half of its limit.
    var isCrowded: Bool { byteCount >= limits.byteCount / 2 }

    /// Throws if the log is at its limit and cannot be moved into the database.
    func requireRoom() throws(StateError) {
        guard isFull else { return }
        // Readers are not waited for, because callers wait.
        let code = withoutWaiting { checkpoint(SQLITE_CHECKPOINT_RESTART).code }
        guard code == SQLITE_OK else {
            note(
                code == SQLITE_BUSY ? readers : "\(connection.failure(code, during: "checkpoint"))"
            )
            throw StateError(
                .noSpace,
                "the log of \(location.database) has \(byteCount) bytes, its limit is "
                    + "\(limits.byteCount): \(status.checkpointFailure ?? "")"
            )
        }
        frameCount = 0
        didRestart()
    }

    /// Runs `body` without waiting for locks of the database.
    func withoutWaiting<R>(_ body: () -> R) -> R {
        connection.waitForLocks(.zero)
        defer { connection.waitForLocks(limits.lockWait) }
        return body()
    }

    /// Moves as much as possible into the database.
    ///
    /// - Returns: The failure of a sync, of the log or of the database; nil if none failed.
    @discardableResult
    func checkpoint() -> SQLiteFailure? {
        let (code, isWhole) = checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        let failure =
            partLoss ?? (code == SQLITE_OK ? nil : connection.failure(code, during: "checkpoint"))
        isDatabaseFull = code & 0xFF == SQLITE_FULL
        let limit = limits.checkpointByteCount / frameByteCount
        // Not again at each commit, if the log cannot be restarted.
        dueFrameCount = frameCount + Swift.max(1, limit / 4)
        if let failure {
            note("\(failure)")
        } else if !isWhole || wasMoved {
            note(readers)
        } else {
            status.checkpointFailure = nil
        }
        isMoved = code == SQLITE_OK && isWhole
        wasMoved = wasMoved || isMoved
        noteSizes()
        return failure.flatMap { $0.isOfSync ? $0 : nil }
    }

    /// Ensures that all of the log is on stable storage.
    ///
    /// Uses a separate descriptor: SQLite has no locks on the log itself that closing it would
    /// drop.
    func sync() throws(StateError) {
        guard let descriptor = try StoreLocation.open(location.log) else {
            throw StateError(.storage, LostPlace.missing(location.log))
        }
        defer { close(descriptor) }
        guard clinux_sync_data(descriptor) == 0 else {
            throw StateError(.storage, "\(location.log) cannot be synced: \(lastSystemError())")
        }
    }

    /// Runs a checkpoint; returns whether all of the log is now in the database.
    private func checkpoint(_ mode: Int32) -> (code: Int32, isWhole: Bool) {
        var (frames, moved): (Int32, Int32) = (0, 0)
        let code = sqlite3_wal_checkpoint_v2(connection.handle, "main", mode, &frames, &moved)
        // SQLite syncs the database only if it has moved all.
        if moved < frames, code == SQLITE_OK || code == SQLITE_BUSY {
            do { try connection.sync() } catch { partLoss = error }
        }
        return (code, moved >= frames)
    }

    /// A sentence about the process that keeps the log from being restarted.
    private var readers: String {
        let holder = LockHolder.description(of: location.logIndex, bytes: LockHolder.readerBytes)
        return "\(holder) reads, so the log of \(byteCount) bytes cannot be reused"
    }

    /// Moves everything into the database, lets `commit` make a transaction at the log's beginning,
    /// and truncates the rest.
    ///
    /// Not by a checkpoint that truncates: if power fails before the file system has the new
    /// length, old frames at the beginning of the log would be put over newer pages. What SQLite
    /// truncates after a commit at the beginning has other salts, and is ignored.
    /// https://www.sqlite.org/fileformat2.html#walformat
    func cutBack(_ commit: () throws -> Void) throws {
        let (code, _) = checkpoint(SQLITE_CHECKPOINT_RESTART)
        status.checkpointFailure =
            code == SQLITE_OK ? nil : "\(connection.failure(code, during: "checkpoint"))"
        try connection.execute("PRAGMA journal_size_limit=\(preallocatedByteCount)")
        defer { try? connection.execute("PRAGMA journal_size_limit=\(limits.keptByteCount)") }
        try commit()
        // If all of it was in use, it is now shorter.
        try preallocate()
    }

    /// Records a failure for the status.
    func note(_ failure: String) { status.checkpointFailure = failure }

    private func noteSizes() {
        status.databaseByteCount = fileByteCount(location.database) ?? 0
        status.logByteCount = fileByteCount(location.log) ?? 0
    }

    /// Extends the log with zeros to the size at which it is reused.
    ///
    /// It does not wait for the disk, which takes 9 ms: the sync of the next commit covers what the
    /// kernel has not written by then. For SQLite, a log ends at the first frame with a wrong checksum.
    /// https://www.sqlite.org/fileformat2.html#walformat
    func preallocate() throws(SQLiteFailure) {
        // Nobody else may append meanwhile.
        try connection.execute("BEGIN IMMEDIATE")
        let size = Int(fileByteCount(location.log) ?? 0)
        if size < preallocatedByteCount {
            WriteAheadLog.extend(location.log, from: size, to: preallocatedByteCount)
        }
        try connection.execute("ROLLBACK")
        noteSizes()
    }

    /// If this fails, the log grows while it is written, as it otherwise would.
    private static func extend(_ path: String, from start: Int, to end: Int) {
        // SQLite has no locks on the log itself, so a separate descriptor is harmless.
        let descriptor = (try? NamedFile.open(path, O_WRONLY)) ?? -1
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let zeros = [UInt8](repeating: 0, count: 1 << 16)
        var offset = start
        while offset < end {
            let count = pwrite(
                descriptor,
                zeros,
                Swift.min(zeros.count, end - offset),
                off_t(offset)
            )
            guard count > 0 else { return }
            offset += count
        }
    }
}
