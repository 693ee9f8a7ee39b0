import CSQLite
import StateEngine
import StateSystem
import Synchronization

/// Moves a part of the log into the database on a thread of its own, while commits go on.
///
/// It moves at most what was committed when it began: a read transaction keeps SQLite from going
/// further. Why that matters says ``OpenStore/checkpoint(acknowledges:)``. The log is not restarted:
/// that takes a checkpoint between two commits, which then has little left to move.
/// https://www.sqlite.org/c3ref/wal_checkpoint_v2.html
///
/// The pages are synced before commits read them from the database. SQLite would sync only a log
/// that it has moved whole, and a sync that fails drops pages: a commit that reads older ones in
/// their place would build on them. So if it fails, the thread stays inside the checkpoint until
/// ``wait()``, between two commits, and the store must be reopened before the next.
///
/// It does not sync the log, as a checkpoint usually does first: what it moves is on stable storage.
/// A sync of the log on this thread could fail on behalf of a commit that is just being written: the
/// kernel drops those pages, and the commit's own sync might then report nothing.
///
/// Whoever releases it calls ``wait()`` first. The thread uses `mover` and writes `result` until
/// `hasEnded`; everything else is for one thread at a time. That is the proof of `@unchecked
/// Sendable`.
final class LogMover: @unchecked Sendable {
    private let mover: SQLiteConnection
    private let reader: SQLiteConnection
    private let thread = WorkerThread(name: "checkpoint", stackByteCount: 256 << 10)
    /// Whether the thread has ended, or waits for ``wait()`` because the sync failed.
    private let hasEnded = Atomic(true)
    private var syncFailure: SQLiteFailure?
    private var mayEnd = BlockingSemaphore()
    private var result: Result<Int, SQLiteFailure>?
    /// Whether the result was not taken yet.
    private(set) var isMoving = false

    /// Whether it has ended, and ``take()`` returns the result.
    var isDone: Bool { isMoving && hasEnded.load(ordering: .acquiring) }

    /// Opens its connections, and database and log for each; no thread runs until ``begin()``.
    ///
    /// They are opened by name: the caller checks afterwards that the names still mean the files of
    /// the store.
    init(beside connection: SQLiteConnection) throws(SQLiteFailure) {
        mover = try connection.another()
        reader = try connection.another()
        try mover.set("synchronous=OFF", "wal_autocheckpoint=0")
        for opened in [mover, reader] { try opened.execute(LogMover.anyRead) }
        let context = Unmanaged.passUnretained(self).toOpaque()
        try mover.hookCheckpoint(syncingEach: LogMover.syncedByteCount, context) { context in
            guard let context else { return }
            Unmanaged<LogMover>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.syncPages() }
        }
    }

    /// So many bytes of pages are synced at once.
    ///
    /// A commit's sync waits behind them in the disk's queue. With 50 clients and pipelines of 16, one
    /// sync of all pages took 6 ms, and those of commits beside it 10 ms; now 1 ms and at most 4 ms. The
    /// p99 of a SET was 1.56 times that of Redis, and is 0.94.
    private static let syncedByteCount = 256 << 10

    private static let anyRead = "SELECT 1 FROM sqlite_schema LIMIT 1"

    /// Begins to move what is committed now.
    ///
    /// - Returns: False if that cannot begin; nothing has changed.
    /// - Complexity: Starting a thread.
    func begin() -> Bool {
        precondition(!isMoving, "the log is being moved already")
        do {
            try reader.execute("BEGIN")
            try reader.execute(LogMover.anyRead)
        } catch {
            endReading()
            return false
        }
        hasEnded.store(false, ordering: .relaxed)
        (syncFailure, mayEnd) = (nil, BlockingSemaphore())
        isMoving = thread.tryStart { [self] in
            result = .some(move())
            hasEnded.store(true, ordering: .releasing)
        }
        if !isMoving {
            hasEnded.store(true, ordering: .relaxed)
            endReading()
        }
        return isMoving
    }

    /// How many frames of the log are in the database, once it has ended; nil before that, and if
    /// the result was taken.
    func take() -> Result<Int, SQLiteFailure>? {
        isDone ? wait() : nil
    }

    /// Waits for the end; nil if nothing was being moved.
    ///
    /// - Complexity: The time of a checkpoint.
    func wait() -> Result<Int, SQLiteFailure>? {
        guard isMoving else { return nil }
        mayEnd.signal()
        thread.join()
        isMoving = false
        endReading()
        defer { result = nil }
        return result
    }

    private func move() -> Result<Int, SQLiteFailure> {
        var (frameCount, movedCount): (Int32, Int32) = (0, 0)
        let code = sqlite3_wal_checkpoint_v2(
            mover.handle,
            "main",
            SQLITE_CHECKPOINT_PASSIVE,
            &frameCount,
            &movedCount
        )
        if let syncFailure { return .failure(syncFailure) }
        guard code == SQLITE_OK else {
            return .failure(mover.failure(code, during: "checkpoint"))
        }
        return .success(Int(movedCount))
    }

    /// In the checkpoint, when the pages are written.
    private func syncPages() {
        do {
            try mover.sync()
        } catch {
            syncFailure = error
            hasEnded.store(true, ordering: .releasing)
            mayEnd.wait()
        }
    }

    private func endReading() {
        if reader.isInTransaction { try? reader.execute("ROLLBACK") }
    }
}
