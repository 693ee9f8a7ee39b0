import CLinux
public import StateEngine
import Synchronization

/// A store in one SQLite database: one appended row for each change, one transaction and one sync
/// for each commit.
///
/// ``load(_:)`` is called first and once. After that, calls must not overlap, as ``Backing`` says;
/// only ``status`` may be read at any time. This, the lock around the status, and that `clock` and
/// what `reports` calls stay the same after the load are the proof of `@unchecked Sendable`.
///
/// A store that is released without ``close()`` is as after a crash: everything committed is there.
public final class SQLiteBacking: Backing, @unchecked Sendable {
    /// True: commits outlive the process.
    public var isPersistent: Bool { true }

    /// History with compaction, metadata, and keys in files beside it.
    public var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.history = self
        capabilities.compaction = self
        capabilities.files = self
        capabilities.deferrals = self
        capabilities.keepsMetadata = true
        return capabilities
    }

    /// The location of the store, and the limits of its log.
    let location: StoreLocation
    let logLimits: LogLimits
    let settings: StateLock<Settings>
    /// The retention of the history.
    ///
    /// Any thread may set it; it applies from the next commit on.
    package var history: HistoryLimits {
        get { settings.withLock { $0.history } }
        set { settings.withLock { $0.history = newValue } }
    }

    /// What rules keep of it; may be set on any thread.
    var rules: HistoryRules? {
        get { settings.withLock { $0.rules } }
        set { settings.withLock { $0.rules = newValue } }
    }

    /// How many bytes of disk space are reserved for deletes and compaction.
    ///
    /// Any thread may set it; it applies from the next checkpoint on.
    package var reserveByteCount: Int64 {
        get { settings.withLock { $0.reserveByteCount } }
        set { settings.withLock { $0.reserveByteCount = newValue } }
    }

    struct Settings {
        var history: HistoryLimits
        var rules: HistoryRules?
        var versions: NewestVersions?
        var reserveByteCount: Int64 = 0
    }

    /// The open store; nil before the load, after the close, and if reopening failed.
    var open: OpenStore?
    /// Held from load to close, also while the store is reopened.
    var ownership: Ownership?

    let deferrals: DeferralLog
    var found = Found()
    var compactionGoal = CompactionGoal()

    package let loading = LoadProgress()
    let gauges = StoreGauges()
    let pause = CompactionPause()
    let gate = HistoryGate()

    /// Who is informed must be set before the load.
    package var reports = Reports()

    /// What goes wrong, and who is informed of it.
    package struct Reports: Sendable {
        /// Called on the commit thread when a checkpoint fails after a successful one, and with nil
        /// when one succeeds again.
        package var onCheckpoint: @Sendable (_ failure: String?) -> Void = { _ in }
        /// Called by ``SQLiteBacking/load(_:)`` with each problem that did not stop it.
        package var onFinding: @Sendable (_ finding: String) -> Void = { _ in }
        /// Which file of the store was missing or replaced when it was closed, as a sentence.
        package internal(set) var lossAtClose: String?
    }

    /// CLOCK_BOOTTIME in milliseconds, for the age of history.
    ///
    /// Tests may replace it before the load.
    package var clock: @Sendable () -> Int64 = { clinux_boottime_milliseconds() }

    /// Which file of the store is missing or replaced, as a sentence; nil if none is.
    ///
    /// May be read on any thread.
    package var fileFinding: String? { gauges.fileFinding }

    private let isInUse = Atomic(false)

    /// Runs `body`, which uses the store; ends the process if another thread uses it at the same
    /// time.
    ///
    /// SQLite takes no locks here. Two threads in one connection would misplace pages, which no
    /// check can repair. What was acknowledged survives the end of the process.
    /// https://www.sqlite.org/threadsafe.html
    func inTurn<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        precondition(
            !isInUse.exchange(true, ordering: .acquiring),
            "two threads use \(location.database) at once"
        )
        defer { isInUse.store(false, ordering: .releasing) }
        return try body()
    }

    /// Makes a store in a data directory, which is created if it is missing: `stated.db`, its stamp
    /// and `lock`, mode 0600.
    ///
    /// `history` is the retention.
    ///
    /// Nothing is opened until ``load(_:)``.
    public convenience init(directory: String, history: HistoryLimits = HistoryLimits()) {
        self.init(location: StoreLocation(directory: directory), history: history)
    }

    /// Makes a store in its own database file, in an existing directory; `<path>.lock` is its
    /// owner's lock.
    ///
    /// `history` is the retention.
    ///
    /// Nothing is opened until ``load(_:)``.
    public convenience init(path: String, history: HistoryLimits = HistoryLimits()) {
        self.init(location: StoreLocation(path: path), history: history)
    }

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
        deferrals = DeferralLog(path: location.deferrals, boot: BootIdentity.bytes())
    }

    /// Appends all changes of the batch in one transaction, with one sync.
    ///
    /// - Throws: ``StateError`` with ``StateError/Code/noSpace`` if the disk or the log is full, or
    ///   ``StateError/Code/readOnly``. Nothing was committed, unless the message begins with
    ///   `outcome unknown`: then every later commit is refused until ``reopen(after:_:)``.
    /// - Complexity: O(*n*) in the bytes of the changes, plus one write per 8 KiB page and one
    ///   fdatasync.
    public func commit(_ batch: borrowing CommitBatch) throws {
        guard batch.changeCount > 0 || !batch.metadata.isEmpty else { return }
        try commit(
            changeCount: batch.changeCount,
            metadata: batch.metadata,
            pendingFileList: batch.pendingFileList
        ) { try batch.forEachChange($0) }
    }

    /// Appends the changes that `source` provides, in one transaction.
    ///
    /// - Parameters:
    ///   - changeCount: How many changes there are.
    ///   - metadata: The metadata of the same commit, in order of revision.
    ///   - pendingFileList: The change of the list of files that the commit may fail to reach.
    ///   - source: Passes on the changes; their bytes are valid until it returns.
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

    /// Moves the log into the database once it is long enough, and records the result.
    ///
    /// If there is nothing to do, this costs a comparison; otherwise a write for each page that
    /// changed since the last time, and two syncs.
    public func maintain() {
        let status = inTurn { () -> StorageStatus? in
            open?.maintainLog()
            return open?.log.status
        }
        guard let status else { return }
        let known = gauges.note(status)
        if (status.checkpointFailure == nil) != (known.checkpointFailure == nil) {
            reports.onCheckpoint(status.checkpointFailure)
        }
    }

    /// Whether the log is long enough to be moved, or its status is not recorded yet.
    public var needsMaintenance: Bool {
        guard let open else { return false }
        let need = compactionNeed
        let isNew = need.isWorthwhile && !compactionGoal.wasWorthwhile
        compactionGoal.wasWorthwhile = need.isWorthwhile
        return open.isLogDue || need.isDue || isNew || gauges.storage != open.log.status
    }

    /// Sizes on disk, and what blocks a checkpoint.
    public var status: StorageStatus { gauges.storage }
}

/// What the commit thread reports about the store, readable on any thread.
final class StoreGauges: Sendable {
    private let compacted = Atomic<Int64>(0)
    private let rowCount = Atomic<Int64>(0)
    private let backlogRowCount = Atomic<Int64>(0)
    private let freeByteCount = Atomic<Int64>(0)
    private let failure = StateLock<String?>(nil)
    private let sizes = StateLock(StorageStatus())
    private let files = StateLock<StoreFiles?>(nil)

    /// Sizes on disk, and what blocks a checkpoint.
    var storage: StorageStatus { sizes.withLock { $0 } }

    /// Which file of the store is missing or replaced, as a sentence; nil if none is.
    var fileFinding: String? { files.withLock { $0 }?.finding }

    /// The amount of history.
    var history: HistoryStatus {
        HistoryStatus(
            compacted: compacted.load(ordering: .relaxed),
            rowCount: rowCount.load(ordering: .relaxed),
            backlogRowCount: backlogRowCount.load(ordering: .relaxed),
            freeByteCount: freeByteCount.load(ordering: .relaxed),
            failure: failure.withLock { $0 }
        )
    }

    func note(_ store: OpenStore) {
        compacted.store(store.sweep.compacted, ordering: .relaxed)
        rowCount.store(store.progress.rowCount, ordering: .relaxed)
    }

    func note(backlogRowCount count: Int64) { backlogRowCount.store(count, ordering: .relaxed) }

    func note(freeByteCount count: Int64) { freeByteCount.store(count, ordering: .relaxed) }

    func note(_ files: StoreFiles) { self.files.withLock { $0 = files } }

    /// - Returns: The status reported before.
    @discardableResult
    func note(_ status: StorageStatus) -> StorageStatus {
        sizes.withLock { known in
            defer { known = status }
            return known
        }
    }

    func note(failure text: String?) { failure.withLock { $0 = text } }
}
