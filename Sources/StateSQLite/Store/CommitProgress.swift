import StateEngine

/// How far a store is committed, and how much of that is on stable storage and acknowledged.
///
/// A piece of compaction is committed without a sync of its own: until the next sync nobody knows whether its rows are gone.
struct CommitProgress {
    /// Which store this is, and the newest commit that was acknowledged.
    let stamp: StoreStamp
    /// The last revision that was committed.
    private(set) var revision: Int64
    /// Rows of the history.
    private(set) var rowCount: Int64
    /// How many there may be if a sync fails: pieces of compaction that it should have covered are there or are not.
    private(set) var doubtfulRowCounts: ClosedRange<Int64>
    /// Whether the log ends with pieces of compaction that no sync has covered yet.
    private(set) var hasUnsyncedCompaction = false
    /// Where the last transaction that was synced ends; nil before the first.
    private var syncedEnd: AcknowledgedCommit.Log?

    init(_ stamp: StoreStamp, revision: Int64, rowCount: Int64) {
        self.stamp = stamp
        self.revision = revision
        self.rowCount = rowCount
        doubtfulRowCounts = rowCount...rowCount
    }

    /// Rows were committed, and are in files that still have their names; if `isSynced`, all of the log is on stable storage.
    mutating func append(_ count: Int, through revision: Int64, isSynced: Bool) {
        rowCount += Int64(count)
        self.revision = revision
        if isSynced { forgetDoubts() }
        acknowledge()
    }

    /// Rows were taken away, in a transaction that was not synced.
    mutating func drop(_ count: Int64) {
        rowCount -= count
        hasUnsyncedCompaction = true
        doubtfulRowCounts = rowCount...doubtfulRowCounts.upperBound
    }

    /// Rows may have been taken away, or not.
    mutating func mayDrop(_ count: Int64) {
        doubtfulRowCounts = rowCount - count...doubtfulRowCounts.upperBound
    }

    /// The log was synced up to here by a transaction, which is not acknowledged yet.
    mutating func noteSync(to end: AcknowledgedCommit.Log?) { syncedEnd = end }

    /// All of the log is on stable storage, pieces of compaction too.
    mutating func acknowledgeAll(to end: AcknowledgedCommit.Log?) {
        syncedEnd = end
        forgetDoubts()
        acknowledge()
    }

    /// Writes to the stamp that everything up to here is stored and synced.
    ///
    /// After the sync, never before: what the stamp says is acknowledged has to be there after any crash.
    func acknowledge() {
        stamp.acknowledged = AcknowledgedCommit(
            revision: revision,
            log: syncedEnd ?? stamp.acknowledged.log
        )
    }

    /// The same once all of it is in the database, and the log goes.
    func acknowledgeWithoutLog() { stamp.acknowledged = AcknowledgedCommit(revision: revision) }

    private mutating func forgetDoubts() {
        hasUnsyncedCompaction = false
        doubtfulRowCounts = rowCount...rowCount
    }
}
