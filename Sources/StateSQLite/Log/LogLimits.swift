/// Limits of the log's size and of a commit's wait.
package struct LogLimits: Hashable, Sendable {
    /// At this size it is moved into the database.
    ///
    /// A smaller one costs more syncs; a larger one did not increase the rows per second.
    package var checkpointByteCount = 8 << 20
    /// A log that grew beyond this, for a reader or a large transaction, is truncated to this size
    /// when it is reused.
    package var keptByteCount = 32 << 20
    /// At this size, if it cannot be moved, commits are refused.
    package var byteCount = 1 << 30
    /// Whether most of it is moved on a thread of its own, while commits go on.
    package var movesAside = true
    /// How long a commit waits for another process that holds the write lock.
    package var lockWait: Duration = .seconds(5)
    /// Rows that are swept together, and held in a commit's way: see ``SweptRows``.
    package var stretchRowCount = 4_096

    package init() {}
}
