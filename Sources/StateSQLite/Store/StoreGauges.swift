import StateEngine
import Synchronization

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
