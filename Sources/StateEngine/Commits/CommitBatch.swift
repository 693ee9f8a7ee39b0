import CLinux

/// Finished transactions on their way to the backing, in order of revision.
///
/// The writer to the keyspace fills it, hands it to the committer and gets it back: it has one
/// owner at a time, and each hand-over is under the lock of the `CommitQueue`. That is the proof of
/// `@unchecked Sendable`.
public final class CommitBatch: @unchecked Sendable {
    /// One transaction in the batch.
    struct Item {
        var revision: Int64
        /// One past its last change in `changes`.
        var changeEnd: Int
        /// Alive as long as the records of the transaction that name it; do not use it if there are
        /// none.
        var cause: Unmanaged<InternedCause>
    }

    /// What a change supersedes; revision 0 means nothing.
    package struct Superseded {
        package var revision: Int64 = 0
        var ordinal: Int32 = 0
        /// As memory has it, and who made it: both are alive as long as the batch's commit has not ended.
        ///
        /// Nil for a delete, and if only the place is known.
        var version: (record: Record, cause: Unmanaged<InternedCause>)?
        /// Whether it is a delete, or a version that no storage keeps.
        package var isKnownDelete = false
    }

    /// One struct, so that adding to it is one access to the object.
    struct Contents {
        var items: [Item] = []
        /// Where the cause changes within a transaction of several writers: the end of what one has
        /// changed, and its cause; empty without such.
        var parts: [(changeEnd: Int, cause: Unmanaged<InternedCause>)] = []
        var changes: [Record] = []
        /// What each change supersedes, read while its memory is cached: the commit thread would
        /// have to wait for it.
        var superseded: [Superseded] = []
        /// In order of revision.
        var metadata: [MetadataEntry] = []
        var byteCount = 0
        /// How many changes storage keeps, and the revision of the last one.
        private(set) var storedCount = 0
        private(set) var storedRevision: Int64 = 0
        /// How many transactions have something for storage, and whether the unfinished one has.
        private(set) var storedTransactionCount = 0
        var hasStored = false
        /// How many of those storage may have later.
        var deferrableCount = 0
        /// The shortest time until which it must have them, in nanoseconds.
        var delay = Int64.max
        /// Whether somebody waits until everything before is on stable storage.
        var isBarrier = false
        /// As ``FileWork/steps``, of all its transactions.
        var fileSteps = 0

        mutating func append(_ change: Record, _ causes: borrowing CauseTable) {
            append(change, change.older.map { Superseded($0, causes) } ?? Superseded())
            noteStored(change)
        }

        mutating func noteStored(_ change: Record) {
            storedCount += 1
            storedRevision = change.revision
            hasStored = true
        }

        mutating func append(_ item: Item) {
            items.append(item)
            if hasStored { storedTransactionCount += 1 }
            hasStored = false
        }

        mutating func append(_ change: Record, _ older: Superseded) {
            superseded.append(older)
            changes.append(change)
        }

        mutating func add(_ other: Contents) {
            let offset = changes.count
            changes.append(contentsOf: other.changes)
            superseded.append(contentsOf: other.superseded)
            for item in other.items {
                var item = item
                item.changeEnd += offset
                items.append(item)
            }
            if !other.parts.isEmpty {
                parts += other.parts.map { ($0.changeEnd + offset, $0.cause) }
            }
            if !other.metadata.isEmpty { metadata += other.metadata }
            byteCount += other.byteCount
            storedCount += other.storedCount
            storedTransactionCount += other.storedTransactionCount
            storedRevision = max(storedRevision, other.storedRevision)
            deferrableCount += other.deferrableCount
            delay = min(delay, other.delay)
            isBarrier = isBarrier || other.isBarrier
            fileSteps += other.fileSteps
        }

        mutating func empty() {
            items.removeAll(keepingCapacity: true)
            changes.removeAll(keepingCapacity: true)
            superseded.removeAll(keepingCapacity: true)
            if !metadata.isEmpty { metadata = [] }
            if !parts.isEmpty { parts = [] }
            (byteCount, storedCount, storedRevision, storedTransactionCount) = (0, 0, 0, 0)
            (deferrableCount, delay, isBarrier, fileSteps) = (0, .max, false, 0)
        }
    }

    @exclusivity(unchecked) var contents = Contents()

    /// What the commit does to the list of pending files.
    @exclusivity(unchecked) package var pendingFileList = PendingFileListChange.keep

    /// The changes of earlier batches that are stored with this one; set by the committer.
    @exclusivity(unchecked) var earlier: DeferredChanges?

    /// Whether storage does not have everything up to its end yet; set by the committer.
    @exclusivity(unchecked) var isDeferred = false

    init() {}

    var items: [Item] { contents.items }
    var changes: [Record] { contents.changes }
    package var byteCount: Int { contents.byteCount }
    var fileSteps: Int { contents.fileSteps }
    /// The metadata that the transactions write, in order of revision.
    package var metadata: [MetadataEntry] { (earlier?.metadata ?? []) + contents.metadata }

    /// Whether there is nothing to commit.
    public var isEmpty: Bool { items.isEmpty }

    /// How many transactions there are.
    public var transactionCount: Int { items.count }

    /// How many of them have something for storage.
    var storedTransactionCount: Int { contents.storedTransactionCount }

    /// How many changes ``forEachChange(_:)`` passes; changes of keys in memory do not count.
    public var changeCount: Int { contents.storedCount + (earlier?.count ?? 0) }

    /// When storage must have a batch.
    enum Storing {
        /// It has nothing for storage.
        case never
        /// Its writers have their answers; storage may have it so many nanoseconds later.
        case within(nanoseconds: Int64)
        /// Its writers wait for storage.
        case now
    }

    /// When storage must have the batch.
    var storing: Storing {
        let contents = contents
        if contents.isBarrier { return .now }
        if contents.metadata.contains(where: { !$0.isPublished }) { return .now }
        if contents.storedCount == 0 { return .never }
        guard contents.deferrableCount == contents.storedCount else { return .now }
        return .within(nanoseconds: contents.delay)
    }

    /// Whether somebody may see something of it before storage has it.
    package var hasPublished: Bool { contents.deferrableCount > 0 }

    /// The revision of the last change that somebody may have seen before storage has it; 0 if there is none.
    package var lastPublishedRevision: Int64 {
        guard hasPublished else { return earlier?.lastRevision ?? 0 }
        return contents.changes.last(where: \.isPublished)?.revision ?? 0
    }

    /// Whether it can be deferred by the loop itself: a long one is copied by the commit thread.
    package var isBriefAndDeferrable: Bool {
        if items.count <= 16, case .within = storing { true } else { false }
    }

    /// The revision of the last transaction of which storage keeps something; nil if it keeps
    /// nothing.
    package var storedRevision: Int64? {
        let revision = max(contents.storedRevision, contents.metadata.last?.revision ?? 0)
        return revision > 0 ? revision : nil
    }

    /// Whether nothing undoes a transaction.
    func isPublished(_ item: Int) -> Bool {
        let start = item == 0 ? 0 : items[item - 1].changeEnd
        return start < items[item].changeEnd && changes[start].isPublished
    }

    /// The revision of the last transaction; 0 if there is none.
    public var lastRevision: Int64 { items.last?.revision ?? 0 }

    /// The revision of the last transaction that changed an entry; nil if none did.
    var lastChangeRevision: Int64? {
        if contents.metadata.isEmpty, !contents.isBarrier { return lastRevision }
        return changes.last?.revision
    }

    /// Calls `body` for each change that storage keeps, in order of revision and ordinal.
    ///
    /// The bytes in a change are borrowed: they live until the batch's commit has ended. A key that
    /// moves from storage to memory is deleted from storage.
    public func forEachChange(_ body: (borrowing StoredChange) throws -> Void) rethrows {
        try earlier?.pass { change, _ in try body(change) }
        try forEachOwnChange { change, _, _ in try body(change) }
    }

    /// The same with what each supersedes.
    package func forEachLinkedChange(
        _ body: (_ change: borrowing StoredChange, _ older: Superseded) throws -> Void
    ) rethrows {
        if let earlier {
            try earlier.pass(body)
        }
        try forEachOwnChange { change, _, older in try body(change, older) }
    }

    /// The same without earlier batches, each with its record.
    func forEachOwnChange(
        _ body: (_ change: borrowing StoredChange, _ record: Record, _ older: Superseded) throws
            -> Void
    ) rethrows {
        var index = 0
        let contents = contents
        // Only records keep a cause alive: a transaction without records may have outlived its
        // cause.
        for item in contents.parts.isEmpty ? contents.items : contents.itemsOfOneCause
        where index < item.changeEnd {
            try item.cause._withUnsafeGuaranteedRef { interned in
                try interned.bytes.withUnsafeBytes { cause in
                    while index < item.changeEnd {
                        // Another processor wrote it: waiting for each in turn took 8 % of a commit
                        // (perf).
                        if index + 4 < contents.changes.count {
                            clinux_prefetch(contents.changes[index + 4].address)
                        }
                        let (change, older) = (contents.changes[index], contents.superseded[index])
                        index += 1
                        if change.isVolatile {
                            guard older.revision > 0 else { continue }
                            let delete = change.storedDelete(cause: cause, superseding: older)
                            try body(delete, change, older)
                        } else {
                            try body(change.stored(cause: cause, superseding: older), change, older)
                        }
                    }
                }
            }
        }
    }

    /// Adds a change to the transaction that the next call of
    /// ``endTransaction(revision:cause:byteCount:)`` ends.
    func append(_ change: Record, _ causes: borrowing CauseTable) {
        contents.append(change, causes)
    }

    /// The same if keys may be in memory.
    ///
    /// `older` is the stored change that it supersedes; if the key is in memory, storage has to
    /// delete that one.
    func append(_ change: Record, superseding older: Superseded) {
        contents.append(change, older)
        guard !change.isVolatile || older.revision > 0 else { return }
        contents.noteStored(change)
        if change.isPublished { contents.deferrableCount += 1 }
    }

    /// Storage must have what was appended last in `delay` nanoseconds.
    func noteDelay(_ delay: Int64) { contents.delay = min(contents.delay, delay) }

    /// Adds a transaction without changes: its answer waits until storage has everything before.
    func appendBarrier(revision: Int64, cause: Unmanaged<InternedCause>) {
        contents.isBarrier = true
        endTransaction(revision: revision, cause: cause, byteCount: 0)
    }

    /// Adds metadata to that transaction.
    func append(_ metadata: [MetadataEntry]) {
        contents.metadata += metadata
        if !metadata.isEmpty { contents.hasStored = true }
    }

    func endTransaction(revision: Int64, cause: Unmanaged<InternedCause>, byteCount: Int) {
        contents.byteCount += byteCount
        contents.append(Item(revision: revision, changeEnd: contents.changes.count, cause: cause))
    }

    /// Moves all of `other` behind the current contents.
    func take(_ other: CommitBatch) {
        if contents.items.isEmpty {
            swap(&contents, &other.contents)
        } else {
            contents.add(other.contents)
            other.removeAll()
        }
    }

    /// Empties the batch and keeps its memory for reuse, up to a bound.
    func removeAll() {
        pendingFileList = .keep
        (earlier, isDeferred) = (nil, false)
        if contents.changes.capacity <= 1 << 16 { contents.empty() } else { contents = Contents() }
    }
}

extension Record {
    /// This version as the change that a backing keeps.
    func stored(cause: Bytes, superseding older: CommitBatch.Superseded) -> StoredChange {
        StoredChange(
            revision: revision,
            ordinal: ordinal,
            key: key,
            value: value,
            created: created,
            owner: owner,
            version: version,
            time: time,
            expires: storedExpiry,
            cause: cause,
            previousRevision: older.revision,
            previousOrdinal: older.ordinal
        )
    }
}

extension CommitBatch.Superseded {
    init(_ record: Record, _ causes: borrowing CauseTable) {
        (revision, ordinal) = (record.revision, record.ordinal)
        isKnownDelete = record.isDeleted || record.isVolatile
        if isKnownDelete { return }
        version = (record, .passUnretained(causes[record.cause]))
    }

    /// The bytes of its value.
    package var byteCount: Int { version?.record.value?.count ?? 0 }

    /// A copy of it; nil if it is a delete, or only its place is known.
    package var change: PastChange? {
        version.map { version in
            version.cause._withUnsafeGuaranteedRef { cause in
                cause.bytes.withUnsafeBytes { PastChange(version.record, cause: $0) }
            }
        }
    }
}
