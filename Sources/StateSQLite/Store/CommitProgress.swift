import StateEngine

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
