import CSQLite
import Glibc
import StateEngine

/// How long the log may get, and how long a commit waits.
package struct LogLimits: Hashable, Sendable {
    /// From here on it is moved into the database: smaller costs more syncs, larger reached no more rows a second.
    package var checkpointByteCount = 8 << 20
    /// What a log that grew beyond it, for a reader or a large transaction, is cut back to when it is reused.
    package var keptByteCount = 32 << 20
    /// Where it cannot be moved and reaches this, commits are refused.
    package var byteCount = 1 << 30
    /// How long a commit waits for a stranger who holds the write lock.
    package var lockWait: Duration = .seconds(5)

    package init() {}
}

/// The write-ahead log of a store and its checkpoints.
///
/// They are ours, not SQLite's automatic ones: those run inside COMMIT, before the replies can go, and COMMIT returns success
/// when their sync fails. PASSIVE is enough: where every page was moved and no reader looks at the log, the next transaction
/// begins at its front again. https://www.sqlite.org/wal.html#ckpt
///
/// The file is made at its full length at the start, for a commit into a file that grows waits for the file system's journal
/// too.
final class WriteAheadLog {
    private let location: StoreLocation
    private let limits: LogLimits
    /// Not a strong cycle: the connection knows this object by its address only, and it holds none of ours.
    private let connection: SQLiteConnection
    private let frameByteCount: Int

    /// Frames of the log in use after the last commit, as SQLite counts them.
    private var frameCount = 0
    /// Where the next checkpoint is due.
    private var dueFrameCount: Int
    /// Whether all of the log was in the database once since it was last begun anew.
    private var wasMoved = false
    /// Whether all of the log is in the database.
    private(set) var isMoved = false
    private(set) var status = StorageStatus()
    /// Whether the last checkpoint had no room for the pages by which the database grows.
    private(set) var isDatabaseFull = false

    /// The log itself, of which only headers of frames are read; -1 where it cannot be opened.
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
        frameByteCount = Int(try connection.number("PRAGMA page_size")) + 24
        dueFrameCount = limits.checkpointByteCount / frameByteCount
        // SQLite keeps no locks on the log itself, which closing this one would drop.
        descriptor = open(location.log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
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
        if descriptor >= 0 { Glibc.close(descriptor) }
    }

    private func didCommit(frameCount frames: Int) {
        // A log that only grew has the salts it had; once it was moved, a commit may begin it anew. If somebody else has done both, the
        // salts noted are of a log that is gone, and count for nothing at a start.
        let hasGrown = frames > frameCount && frameCount > 0 && !wasMoved && !isMoved
        let salts = hasGrown ? self.salts : salts(ofFrame: frames)
        if frames <= frameCount || salts != self.salts {
            // Begun anew: whatever was in the way is gone.
            didRestart()
        }
        isMoved = false
        frameCount = frames
        self.salts = salts
        status.logByteCount = Swift.max(status.logByteCount, Int64(byteCount))
    }

    /// Where the last commit ends, and in which file; nil before the first commit, and if the log cannot be read.
    ///
    /// The salts are those of the commit's own log, also if another process begins the log anew meanwhile.
    var end: AcknowledgedCommit.Log? {
        guard let salts, let file, frameCount > 0 else { return nil }
        return AcknowledgedCommit.Log(
            position: LogPosition(frameCount: frameCount, salts: salts),
            file: file
        )
    }

    private func salts(ofFrame number: Int) -> UInt64? {
        let size = frameByteCount - LogPosition.frameHeaderByteCount
        let offset = LogPosition.offset(ofFrame: number, pageByteCount: size)
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

    /// Bytes of the log in use.
    private var byteCount: Int { frameCount * frameByteCount + 32 }

    /// The length that the file is made with: a checkpoint comes a little after it is due.
    private var preallocatedByteCount: Int {
        limits.checkpointByteCount + limits.checkpointByteCount / 8
    }

    /// Whether the log is long enough for a checkpoint.
    var isCheckpointDue: Bool { frameCount >= dueFrameCount }

    /// Whether what can wait has to: the log is half as long as it may get.
    var isCrowded: Bool { byteCount >= limits.byteCount / 2 }

    /// Throws where the log is at its limit and cannot be moved into the database.
    func requireRoom() throws(StateError) {
        guard byteCount >= limits.byteCount else { return }
        // Readers are not waited for: callers are.
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

    /// Runs `body`, which does not wait for who holds a lock of the database.
    func withoutWaiting<R>(_ body: () -> R) -> R {
        connection.waitForLocks(.zero)
        defer { connection.waitForLocks(limits.lockWait) }
        return body()
    }

    /// Moves what it can into the database.
    ///
    /// - Returns: How a sync failed, of the log or of the database; nil where none did.
    @discardableResult
    func checkpoint() -> SQLiteFailure? {
        let (code, isWhole) = checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        let failure = code == SQLITE_OK ? nil : connection.failure(code, during: "checkpoint")
        isDatabaseFull = code & 0xFF == SQLITE_FULL
        let limit = limits.checkpointByteCount / frameByteCount
        // Not again at each commit, where the log cannot be begun anew.
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
        // SQLITE_IOERR_FSYNC, a macro that Swift does not see.
        return code == SQLITE_IOERR | 4 << 8 ? failure : nil
    }

    /// Makes sure that all of the log is on stable storage.
    ///
    /// Through a descriptor of our own: SQLite keeps no locks on the log itself, which closing it would drop.
    func sync() throws(StateError) {
        let descriptor = open(location.log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(location.log) cannot be opened: \(lastSystemError())")
        }
        defer { close(descriptor) }
        guard fdatasync(descriptor) == 0 else {
            throw StateError(.storage, "\(location.log) cannot be synced: \(lastSystemError())")
        }
    }

    /// Runs a checkpoint, and says whether all of the log is in the database now.
    private func checkpoint(_ mode: Int32) -> (code: Int32, isWhole: Bool) {
        var frames: Int32 = 0
        var moved: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(connection.handle, "main", mode, &frames, &moved)
        return (code, moved >= frames)
    }

    /// Who keeps the log from being begun anew.
    private var readers: String {
        let holder = LockHolder.description(of: location.logIndex, bytes: LockHolder.readerBytes)
        return "\(holder) reads, so the log of \(byteCount) bytes cannot be reused"
    }

    /// Moves everything into the database, has `commit` make a transaction at the log's front, and cuts off what is behind it.
    ///
    /// Never by a checkpoint that truncates: where power fails before the file system has the new length, frames at the front
    /// that are left of the old log would be put over newer pages. What SQLite cuts off after a commit at the front has
    /// another salt, and counts for nothing. https://www.sqlite.org/fileformat2.html#walformat
    func cutBack(_ commit: () throws -> Void) throws {
        let (code, _) = checkpoint(SQLITE_CHECKPOINT_RESTART)
        status.checkpointFailure =
            code == SQLITE_OK ? nil : "\(connection.failure(code, during: "checkpoint"))"
        try connection.execute("PRAGMA journal_size_limit=\(preallocatedByteCount)")
        defer { try? connection.execute("PRAGMA journal_size_limit=\(limits.keptByteCount)") }
        try commit()
        // Where all of it was in use, it is shorter now.
        try preallocate()
    }

    /// Keeps a failure for the status.
    func note(_ failure: String) { status.checkpointFailure = failure }

    private func noteSizes() {
        status.databaseByteCount = fileByteCount(location.database) ?? 0
        status.logByteCount = fileByteCount(location.log) ?? 0
    }

    /// Fills the log up with zeros to the length at which it is reused.
    ///
    /// SQLite ends a log at the first frame whose checksum does not fit. https://www.sqlite.org/fileformat2.html#walformat
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

    /// Without success the log just grows while it is written, as it would anyway.
    private static func extend(_ path: String, from start: Int, to end: Int) {
        // SQLite keeps no locks on the log itself, so a descriptor of our own does no harm.
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
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
        fdatasync(descriptor)
    }
}
