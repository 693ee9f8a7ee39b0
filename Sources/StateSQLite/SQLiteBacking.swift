import CLinux
import CSQLite
public import StateEngine
import Synchronization

/// The store in one SQLite database: a row appended per change, one transaction and one sync per commit.
///
/// ``load(_:)`` is first and once, everything after it is one call at a time, as ``Backing`` says; only ``status`` may be
/// asked for from anywhere. That, the lock around the status, and that `clock`, `onCheckpoint` and `onFinding` are not changed
/// after the load are the proof of `@unchecked Sendable`.
///
/// A store that is dropped without ``close()`` is as it would be after a crash: everything committed is there.
public final class SQLiteBacking: Backing, @unchecked Sendable {
    /// True: what is committed outlives the process.
    public var isPersistent: Bool { true }

    /// A history that is compacted, metadata, and keys in files beside it.
    public var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.history = self
        capabilities.compaction = self
        capabilities.files = self
        capabilities.keepsMetadata = true
        return capabilities
    }

    /// Where the store is, and how large the log may get.
    let location: StoreLocation
    let logLimits: LogLimits
    private let settings: StateLock<Settings>
    /// How much of the past is kept; may be exchanged from any thread, and counts from the next commit on.
    package var history: HistoryLimits {
        get { settings.withLock { $0.history } }
        set { settings.withLock { $0.history = newValue } }
    }

    /// Bytes of the disk that are kept for deletes and compaction; may be exchanged from any thread, and counts from the next
    /// checkpoint on.
    package var reserveByteCount: Int64 {
        get { settings.withLock { $0.reserveByteCount } }
        set { settings.withLock { $0.reserveByteCount = newValue } }
    }

    private struct Settings {
        var history: HistoryLimits
        var reserveByteCount: Int64 = 0
    }

    /// Whose turn it is to commit; nil before the load, after the close, and where the store could not be opened again.
    var open: OpenStore?
    /// Held from load to close, also while the store is opened anew.
    var ownership: Ownership?

    struct Ownership {
        let lock: OwnerLock
        let stamp: StoreStamp
    }

    /// The mark of files of the store as it was opened, until somebody takes it.
    var foundPendingFileList: String?
    /// What was acknowledged when the store was last open.
    var acknowledged = Acknowledged()
    var compactionGoal = CompactionGoal()

    struct Acknowledged {
        /// As many rows as compaction that was not synced may have left.
        var rowCounts: ClosedRange<Int64> = 0...0
        /// From here on the history was said to be whole.
        var compacted: Int64 = 0
    }

    let gauges = StoreGauges()
    let gate = HistoryGate()

    /// Called on the commit thread when a checkpoint fails where the one before did not, and with nil when one succeeds again;
    /// set before the load.
    package var onCheckpoint: @Sendable (_ failure: String?) -> Void = { _ in }

    /// Called by ``load(_:)`` with what it found and went on with all the same, a sentence each; set before.
    package var onFinding: @Sendable (_ finding: String) -> Void = { _ in }

    /// Milliseconds of CLOCK_BOOTTIME, by which history grows old; a test may have another, set before the load.
    package var clock: @Sendable () -> Int64 = { clinux_boottime_milliseconds() }

    /// Which file of the store was not in its place when it was closed, in a sentence.
    package private(set) var lossAtClose: String?
    /// Which file of the store is not in its place, in a sentence; nil if all are.
    ///
    /// May be asked for from any thread.
    package var fileFinding: String? { gauges.fileFinding }

    private let isInUse = Atomic(false)

    /// Runs `body`, which uses the store, and ends the process where another thread does, too.
    ///
    /// SQLite takes no locks here. Two threads in one connection put pages in one another's places, which no check undoes, where
    /// what was told outlives a process that ends. https://www.sqlite.org/threadsafe.html
    func inTurn<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        precondition(
            !isInUse.exchange(true, ordering: .acquiring),
            "two threads use \(location.database) at once"
        )
        defer { isInUse.store(false, ordering: .releasing) }
        return try body()
    }

    /// The store in a data directory, which is made where it is absent: `stated.db`, its mark and `lock`, mode 0600; `history`
    /// says how much of the past it keeps.
    ///
    /// Nothing is opened until ``load(_:)``.
    public convenience init(directory: String, history: HistoryLimits = HistoryLimits()) {
        self.init(location: StoreLocation(directory: directory), history: history)
    }

    /// The store in a database file of its own, in a directory that is there; `<path>.lock` is its owner's lock.
    ///
    /// Nothing is opened until ``load(_:)``.
    public convenience init(path: String) { self.init(location: StoreLocation(path: path)) }

    package convenience init(
        directory: String,
        logLimits: LogLimits,
        history: HistoryLimits = HistoryLimits()
    ) {
        self.init(
            location: StoreLocation(directory: directory),
            logLimits: logLimits,
            history: history
        )
    }

    init(
        location: StoreLocation,
        logLimits: LogLimits = LogLimits(),
        history: HistoryLimits = HistoryLimits()
    ) {
        self.location = location
        self.logLimits = logLimits
        settings = StateLock(Settings(history: history))
    }

    /// Appends all changes of the batch in one transaction, with one sync.
    ///
    /// - Throws: ``StateError`` with ``StateError/Code/noSpace`` where the disk or the log is full, or
    ///   ``StateError/Code/readOnly``. Nothing was committed, unless the message begins with `outcome unknown`: then every
    ///   later commit is refused until ``reopen(after:_:)``.
    /// - Complexity: O(*n*) in the bytes of the changes, plus one write per 8 KiB page and one fdatasync.
    public func commit(_ batch: borrowing CommitBatch) throws {
        guard batch.changeCount > 0 || !batch.metadata.isEmpty else { return }
        try commit(
            changeCount: batch.changeCount,
            metadata: batch.metadata,
            pendingFileList: batch.pendingFileList
        ) { try batch.forEachChange($0) }
    }

    /// Appends the changes that `source` hands out, in one transaction.
    ///
    /// - Parameters:
    ///   - changeCount: How many there are.
    ///   - metadata: What is noted with them, in order of revision.
    ///   - pendingFileList: What becomes of the mark of files that may not be reached.
    ///   - source: Hands them out; the bytes in them live until it returns.
    /// - Throws: What ``commit(_:)`` throws, and what `source` throws.
    package func commit(
        changeCount: Int,
        metadata: [MetadataEntry] = [],
        pendingFileList: PendingFileListChange = .keep,
        _ source: ((borrowing StoredChange) throws -> Void) throws -> Void
    ) throws {
        try inTurn {
            guard let open else { throw notOpen() }
            try open.commit(
                rowCount: changeCount,
                metadata: metadata,
                pendingFileList: pendingFileList,
                source
            )
            gauges.note(open)
        }
    }

    func notOpen() -> StateError {
        StateError(.readOnly, "\(location.database) is not open: nothing was committed")
    }

    /// Moves the log into the database once it is long enough, and remembers what came of it.
    ///
    /// Costs a comparison where there is nothing to do; else writes each page that changed since the last time, and two
    /// syncs.
    public func maintain() {
        let status = inTurn { () -> StorageStatus? in
            if let open, open.log.isCheckpointDue { open.checkpoint() }
            return open?.log.status
        }
        guard let status else { return }
        let known = gauges.note(status)
        if (status.checkpointFailure == nil) != (known.checkpointFailure == nil) {
            onCheckpoint(status.checkpointFailure)
        }
    }

    /// Whether the log is long enough to be moved, or its status is not known yet.
    public var needsMaintenance: Bool {
        guard let open else { return false }
        return open.log.isCheckpointDue || compactionNeed.isWorthwhile
            || gauges.storage != open.log.status
    }

    /// Records the number of rows, empties the log, closes the database and releases the lock.
    ///
    /// If files of the store were removed or replaced meanwhile, nothing is written to what has their names, and `lossAtClose` says
    /// so.
    public func close() {
        let wasLoaded = ownership != nil
        ownership = nil
        inTurn {
            guard let closing = open else {
                if wasLoaded {
                    lossAtClose = fileFinding ?? "\(location.database) could not be opened again"
                }
                return
            }
            open = nil
            lossAtClose = fileFinding
            gauges.note(closing.finish())
        }
    }

    /// Sizes on disk, and what stands in the way of a checkpoint.
    public var status: StorageStatus { gauges.storage }
}

extension SQLiteBacking {
    /// Lets SQLite count no memory in this process, which saves a lock for each allocation.
    ///
    /// For a program of its own, before any use of SQLite; afterwards it does nothing.
    package static func omitMemoryStatistics() { _ = csqlite_keep_no_memory_statistics() }
}
