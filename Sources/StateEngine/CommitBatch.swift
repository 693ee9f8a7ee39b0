/// Finished transactions on their way to the backing, in order of revision.
///
/// Filled by whoever writes to the keyspace, then handed to the commit thread, then handed back: one owner at a time,
/// and each hand-over is under the lock of the ``CommitQueue``. That is the proof of `@unchecked Sendable`.
public final class CommitBatch: @unchecked Sendable {
    /// One transaction in the batch.
    struct Item {
        var revision: Int64
        /// One past its last change in `changes`.
        var changeEnd: Int
        /// Alive as long as the records of the transaction are, which name it.
        var cause: Unmanaged<InternedCause>
    }

    /// A change of the history; revision 0: none.
    struct Place {
        var revision: Int64
        var ordinal: Int32
    }

    private(set) var items: [Item] = []
    private(set) var changes: [Record] = []
    /// What each of them supersedes, read while its memory is at hand: the commit thread would wait for it.
    private var superseded: [Place] = []
    private(set) var byteCount = 0

    init() {}

    /// Whether there is nothing to commit.
    public var isEmpty: Bool { items.isEmpty }

    /// How many transactions there are.
    public var transactionCount: Int { items.count }

    /// How many changes they have together.
    public var changeCount: Int { changes.count }

    /// The revision of the first transaction; 0 where there is none.
    public var firstRevision: Int64 { items.first?.revision ?? 0 }

    /// The revision of the last transaction; 0 where there is none.
    public var lastRevision: Int64 { items.last?.revision ?? 0 }

    /// Calls `body` for each change in order of revision and ordinal.
    ///
    /// The bytes in a change are borrowed: they live until the batch's commit has ended.
    public func forEachChange(_ body: (borrowing StoredChange) throws -> Void) rethrows {
        var index = 0
        for item in items {
            try item.cause._withUnsafeGuaranteedRef { interned in
                try interned.bytes.withUnsafeBytes { cause in
                    while index < item.changeEnd {
                        try body(
                            changes[index].stored(cause: cause, superseding: superseded[index])
                        )
                        index += 1
                    }
                }
            }
        }
    }

    func append(_ changes: [Record?], revision: Int64, cause: InternedCause, byteCount: Int) {
        for case let record? in changes {
            let older = record.older
            superseded.append(Place(revision: older?.revision ?? 0, ordinal: older?.ordinal ?? 0))
            self.changes.append(record)
        }
        self.byteCount += byteCount
        items.append(
            Item(revision: revision, changeEnd: self.changes.count, cause: .passUnretained(cause))
        )
    }

    /// Moves all of `other` behind what is here.
    func append(_ other: CommitBatch) {
        let offset = changes.count
        changes.append(contentsOf: other.changes)
        superseded.append(contentsOf: other.superseded)
        for item in other.items {
            var item = item
            item.changeEnd += offset
            items.append(item)
        }
        byteCount += other.byteCount
        other.removeAll()
    }

    /// Empties the batch and keeps its memory for the next, up to a bound.
    func removeAll() {
        let keepsCapacity = changes.capacity <= 1 << 16
        items.removeAll(keepingCapacity: keepsCapacity)
        changes.removeAll(keepingCapacity: keepsCapacity)
        superseded.removeAll(keepingCapacity: keepsCapacity)
        byteCount = 0
    }
}

extension Record {
    /// The change that this version is, as a backing keeps it.
    func stored(cause: Bytes, superseding place: CommitBatch.Place) -> StoredChange {
        StoredChange(
            revision: revision,
            ordinal: ordinal,
            key: key,
            value: value,
            created: created,
            owner: owner,
            version: version,
            time: time,
            cause: cause,
            previousRevision: place.revision,
            previousOrdinal: place.ordinal
        )
    }
}
