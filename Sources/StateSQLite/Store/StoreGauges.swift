import StateEngine
import Synchronization

/// What a store takes on disk.
public struct StorageStatus: Hashable, Sendable {
    /// Bytes of the database file.
    public var databaseByteCount: Int64 = 0
    /// Bytes of the write-ahead log.
    public var logByteCount: Int64 = 0
    /// Why the log could not be moved into the database the last time; nil where it could.
    public var checkpointFailure: String?
}

/// How much history a store has.
package struct HistoryStatus: Hashable, Sendable {
    /// From this revision on it is whole.
    package var compacted: Int64 = 0
    /// Rows: live ones, and changes.
    package var rowCount: Int64 = 0
    /// Changes beyond the retention that compaction has not taken away yet.
    package var backlogRowCount: Int64 = 0
    /// Bytes of the database that nothing uses.
    package var freeByteCount: Int64 = 0
    /// Why the last piece of compaction failed; nil where it did not.
    package var failure: String?
}

/// What the commit thread reports of the store, for any thread to read.
final class StoreGauges: Sendable {
    private let compacted = Atomic<Int64>(0)
    private let rowCount = Atomic<Int64>(0)
    private let backlogRowCount = Atomic<Int64>(0)
    private let freeByteCount = Atomic<Int64>(0)
    private let failure = StateLock<String?>(nil)
    private let sizes = StateLock(StorageStatus())
    private let files = StateLock<StoreFiles?>(nil)

    /// Sizes on disk, and what stands in the way of a checkpoint.
    var storage: StorageStatus { sizes.withLock { $0 } }

    /// Which file of the store is not in its place, in a sentence; nil if all are.
    var fileFinding: String? { files.withLock { $0 }?.finding }

    /// How much history there is.
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

    /// - Returns: What was reported before.
    @discardableResult
    func note(_ status: StorageStatus) -> StorageStatus {
        sizes.withLock { known in
            defer { known = status }
            return known
        }
    }

    func note(failure text: String?) { failure.withLock { $0 = text } }
}
