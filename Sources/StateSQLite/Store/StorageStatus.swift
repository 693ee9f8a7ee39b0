/// The size of a store on disk.
public struct StorageStatus: Hashable, Sendable {
    /// The size of the database file in bytes.
    public var databaseByteCount: Int64 = 0
    /// The size of the write-ahead log in bytes.
    public var logByteCount: Int64 = 0
    /// Why the last checkpoint could not move the log into the database; nil if it could.
    public var checkpointFailure: String?
}

/// The amount of history in a store.
package struct HistoryStatus: Hashable, Sendable {
    /// The oldest revision from which the history is complete.
    package var compacted: Int64 = 0
    /// The number of rows: present entries, and changes.
    package var rowCount: Int64 = 0
    /// How many changes beyond the retention compaction has not removed yet.
    package var backlogRowCount: Int64 = 0
    /// How many bytes of the database are unused.
    package var freeByteCount: Int64 = 0
    /// Why the last step of compaction failed; nil if it did not.
    package var failure: String?
}
