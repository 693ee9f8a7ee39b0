import CLinux

/// A backing that takes changes without a sync, where the end of the process does not lose them, though a
/// failure of the machine does.
///
/// The next ``Backing/commit(_:)`` makes them durable, and commits of its batch what is not there yet.
package protocol DeferralKeeping: AnyObject, Sendable {
    /// Whether the load has found all that the last process had shown.
    var hasAllDeferred: Bool { get }

    /// Prepares, before anything is deferred; it may wait for the disk.
    func prepareToDefer()

    /// Something was shown, or is about to be, that is not kept: if the process ends now, the next load is
    /// to find that it is missing.
    func noteShownOnly()

    /// Takes a copy of a batch of which storage may have everything later, for the next ``keep(through:)``;
    /// one thread at a time calls it, before storage can have the batch.
    ///
    /// - Parameters:
    ///   - batch: Its revisions are above all those that were added.
    ///   - revision: The last one before it that storage has or is to have.
    /// - Complexity: O(*n*) in the bytes; it does not wait for the disk.
    func add(_ batch: CommitBatch, after revision: Int64)

    /// Keeps all that was added, if what comes before it is kept, and nobody has to be waited for; called by
    /// any thread, before anybody sees it.
    ///
    /// - Returns: Whether everything up to a revision is kept that storage is to have.
    /// - Complexity: O(*n*) in the bytes, and one write without a sync.
    func keep(through revision: Int64) -> Bool

    /// The same with a batch whose ``CommitBatch/earlier`` may not be kept, by the thread that has the
    /// backing; it may wait for the disk.
    ///
    /// - Returns: Whether all of it is kept.
    func append(_ batch: CommitBatch) -> Bool

    /// About how much is kept and not durable; any thread may ask.
    var unsyncedByteCount: Int { get }
}

/// Changes that readers, watchers and their writers have, and storage does not: those of keys whose
/// rule has `durability: "interval"`.
///
/// They are copies, because the keyspace frees a version once a later one is published. They keep
/// their revisions, and are stored before any later change: so after a crash storage has everything
/// up to some revision, and nothing after it.
///
/// Used by the thread that has the backing, one at a time: the proof of `@unchecked Sendable`.
final class DeferredChanges: @unchecked Sendable {
    private struct Change {
        let record: Record
        let older: CommitBatch.Superseded
        /// The index of its cause.
        let cause: Int
    }

    private var changes: [Change] = []
    /// One for all changes of the same writer in a row.
    private var causes: [[UInt8]] = []
    /// The newest of each name, which their transactions have written.
    private var newestMetadata: [String: MetadataEntry] = [:]
    /// Bytes of keys and values.
    private(set) var byteCount = 0
    /// The transactions that they are of.
    private(set) var transactionCount = 0
    /// When storage must have them, in nanoseconds of the monotonic clock.
    private(set) var due = Int64.max

    /// Whether storage refused them when it was last asked.
    var hasFailed = false

    init() {}

    deinit { removeAll() }

    /// About how much memory they take.
    var footprint: Int { DeferredChanges.footprint(byteCount, count) }

    /// About how much memory so many changes take: beside keys and values, some 100 bytes each, and
    /// their causes.
    static func footprint(_ byteCount: Int, _ count: Int) -> Int { byteCount + count * 200 }

    /// Storage is not asked before then.
    func postpone(until time: Int64) { if !isEmpty { due = time } }

    var isEmpty: Bool { changes.isEmpty }
    var count: Int { changes.count }

    /// The revision of the last one; 0 if there is none.
    var lastRevision: Int64 { changes.last?.record.revision ?? 0 }

    /// The metadata that is stored with them.
    var metadata: [MetadataEntry] {
        newestMetadata.isEmpty ? [] : newestMetadata.values.sorted { $0.revision < $1.revision }
    }

    /// Copies all changes of a batch that storage keeps.
    ///
    /// - Parameters:
    ///   - batch: Its revisions are above those here.
    ///   - due: When storage must have them.
    func take(_ batch: CommitBatch, until due: Int64) {
        batch.forEachOwnChange { change, record, older in
            var older = older
            // Its memory is freed sooner.
            older.version = nil
            changes.append(
                Change(record: copy(record), older: older, cause: index(of: change.cause))
            )
            byteCount += record.byteCount
        }
        for entry in batch.contents.metadata { newestMetadata[entry.name] = entry }
        transactionCount += batch.storedTransactionCount
        self.due = min(self.due, due)
    }

    /// Calls `body` for each, in order of revision and ordinal; the bytes are borrowed.
    func pass(
        _ body: (borrowing StoredChange, CommitBatch.Superseded) throws -> Void
    ) rethrows {
        for change in changes {
            try causes[change.cause].withUnsafeBytes { cause in
                let stored = change.record.stored(cause: cause, superseding: change.older)
                try body(stored, change.older)
            }
        }
    }

    /// Storage has them, or never will.
    func removeAll() {
        for change in changes { change.record.deallocate() }
        changes.removeAll(keepingCapacity: changes.count <= 4_096)
        causes.removeAll()
        if !newestMetadata.isEmpty { newestMetadata.removeAll() }
        (byteCount, transactionCount, due) = (0, 0, .max)
    }

    private func index(of cause: Bytes) -> Int {
        let isLast = causes.last?.withUnsafeBytes { cause.isEqual(to: $0) } ?? false
        if isLast { return causes.count - 1 }
        causes.append(Array(cause))
        return causes.count - 1
    }

    private func copy(_ record: Record) -> Record {
        let fields = Record.Fields(
            revision: record.revision,
            created: record.created,
            version: record.version,
            time: record.time,
            ordinal: record.ordinal,
            owner: record.owner,
            cause: 0,
            expires: record.storedExpiry
        )
        return Record.make(fields, key: record.key, value: record.value)
    }
}
