import CSQLite
import Glibc
import StateEngine

/// How long the log may get.
package struct LogLimits: Hashable, Sendable {
    /// From here on it is moved into the database.
    package var checkpointByteCount = 8 << 20
    /// What a log that grew beyond it, for a reader or a large transaction, is cut back to when it is reused.
    package var keptByteCount = 32 << 20
    /// Where it cannot be moved and reaches this, commits are refused.
    package var byteCount = 1 << 30

    package init() {}

    package init(checkpointByteCount: Int, keptByteCount: Int, byteCount: Int) {
        self.checkpointByteCount = checkpointByteCount
        self.keptByteCount = keptByteCount
        self.byteCount = byteCount
    }
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
    /// Checkpoints since the log was last begun anew.
    private var checkpointCount = 0
    private(set) var status = StorageStatus()

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
        try connection.execute("PRAGMA journal_size_limit=\(limits.keptByteCount)")
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

    deinit { sqlite3_wal_hook(connection.handle, nil, nil) }

    private func didCommit(frameCount frames: Int) {
        if frames < frameCount {
            // Begun anew: whatever was in the way is gone.
            checkpointCount = 0
            dueFrameCount = limits.checkpointByteCount / frameByteCount
            status.checkpointFailure = nil
        }
        frameCount = frames
        status.logByteCount = Swift.max(status.logByteCount, Int64(byteCount))
    }

    /// Bytes of the log in use.
    private var byteCount: Int { frameCount * frameByteCount + 32 }

    /// Whether the log is long enough for a checkpoint.
    var isCheckpointDue: Bool { frameCount >= dueFrameCount }

    /// Throws where the log is at its limit and cannot be moved into the database.
    func requireRoom() throws(StateError) {
        guard byteCount >= limits.byteCount else { return }
        if isCheckpointDue { checkpoint() }
        guard let failure = status.checkpointFailure else { return }
        throw StateError(
            .noSpace,
            "the log of \(location.database) has \(byteCount) bytes, its limit is "
                + "\(limits.byteCount): \(failure)"
        )
    }

    /// Moves what it can into the database.
    func checkpoint() {
        var frames: Int32 = 0
        var moved: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(
            connection.handle,
            "main",
            SQLITE_CHECKPOINT_PASSIVE,
            &frames,
            &moved
        )
        let limit = limits.checkpointByteCount / frameByteCount
        // Not again at each commit, where the log cannot be begun anew.
        dueFrameCount = frameCount + Swift.max(1, limit / 4)
        if code != SQLITE_OK {
            note("\(connection.failure(code, during: "checkpoint"))")
        } else if moved < frames || checkpointCount > 0 {
            let reader = LockHolder.description(
                of: location.logIndex,
                bytes: LockHolder.readerBytes
            )
            note("\(reader) reads, so the log of \(byteCount) bytes cannot be reused")
        } else {
            status.checkpointFailure = nil
        }
        checkpointCount += 1
        noteSizes()
    }

    /// Moves everything into the database and empties the log: at a clean stop.
    func empty() {
        let code = sqlite3_wal_checkpoint_v2(
            connection.handle,
            "main",
            SQLITE_CHECKPOINT_TRUNCATE,
            nil,
            nil
        )
        if code != SQLITE_OK { note("\(connection.failure(code, during: "checkpoint"))") }
        noteSizes()
    }

    /// Keeps a failure for the status.
    func note(_ failure: String) { status.checkpointFailure = failure }

    private func noteSizes() {
        status.databaseByteCount = WriteAheadLog.byteCount(of: location.database)
        status.logByteCount = WriteAheadLog.byteCount(of: location.log)
    }

    private static func byteCount(of path: String) -> Int64 {
        var file = stat()
        return stat(path, &file) == 0 ? Int64(file.st_size) : 0
    }

    /// Fills the log up with zeros to the length at which it is reused.
    ///
    /// SQLite ends a log at the first frame whose checksum does not fit. https://www.sqlite.org/fileformat2.html#walformat
    func preallocate() throws(SQLiteFailure) {
        // Nobody else may append meanwhile.
        try connection.execute("BEGIN IMMEDIATE")
        let wanted = limits.checkpointByteCount + limits.checkpointByteCount / 8
        let size = Int(WriteAheadLog.byteCount(of: location.log))
        if size < wanted { WriteAheadLog.extend(location.log, from: size, to: wanted) }
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
