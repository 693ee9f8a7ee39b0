/// A change that storage holds although it was not reported, with bytes of its own.
struct AdoptedChange: Sendable {
    fileprivate var fields: Record.Fields
    fileprivate(set) var key: [UInt8]
    let value: [UInt8]?
    fileprivate var cause: [UInt8]

    var revision: Int64 { fields.revision }

    init(_ change: borrowing StoredChange) {
        fields = Record.Fields(change, cause: 0)
        key = Array(change.key)
        value = change.value.map { Array($0) }
        cause = Array(change.cause)
    }

    /// A change that was not made by this process; `cause` is ``Cause/description`` in UTF-8.
    init(_ fields: Record.Fields, key: [UInt8], value: [UInt8]?, cause: [UInt8]) {
        self.fields = fields
        self.key = key
        self.value = value
        self.cause = cause
    }
}

extension AdoptedChange {
    /// Calls `body` with the change in the form that a backing uses.
    func withStored(_ body: (borrowing StoredChange) -> Void) {
        key.withUnsafeBytes { key in
            cause.withUnsafeBytes { cause in
                (value ?? []).withUnsafeBytes { bytes in
                    body(
                        StoredChange(
                            revision: fields.revision,
                            ordinal: fields.ordinal,
                            key: key,
                            value: value == nil ? nil : bytes,
                            created: fields.created,
                            owner: fields.owner,
                            version: fields.version,
                            time: fields.time,
                            expires: fields.expires,
                            cause: cause,
                            previousRevision: 0,
                            previousOrdinal: 0
                        )
                    )
                }
            }
        }
    }
}

/// After a commit whose sync failed: storage may hold the commit all the same.
extension KeyspaceCore {
    /// Refuses writes from here on; reads are still answered.
    func refuseWrites(after error: StateError) {
        admission.refusals.reopening = StateError(
            .readOnly,
            "writes are refused until the store is open again (see the log): \(error.message)"
        )
    }

    /// Adopts commits that storage holds beyond those reported, and publishes them in order,
    /// together with the commits in doubt, which nothing has undone.
    ///
    /// Nothing may be provisional except what is published.
    ///
    /// - Parameter changes: What storage holds beyond what it is known to hold; deferred changes
    ///   among them are published already.
    /// - Returns: The number of commits that nobody knew of; and the commits in doubt that storage
    ///   does not hold, which it must have before any later one: nil if there are none.
    func adopt(_ changes: [AdoptedChange]) -> (count: Int, unstored: CommitBatch?) {
        let batch = CommitBatch()
        // What storage has is not known from its end, which may be a key in memory.
        batch.isDeferred = true
        var published = pending.inDoubt.items.indices
        /// Appends those before a revision; each supersedes what storage had of its keys before.
        func appendPublished(before revision: Int64) {
            while let item = published.first, pending.inDoubt.items[item].revision < revision {
                batch.append(published: item, of: pending.inDoubt)
                published.removeFirst()
            }
        }
        var count = 0
        var index = changes.firstIndex { $0.revision > revisions.durable } ?? changes.count
        while index < changes.count {
            let revision = changes[index].revision
            let end = changes[index...].firstIndex { $0.revision != revision } ?? changes.count
            appendPublished(before: revision)
            if let item = published.first, pending.inDoubt.items[item].revision == revision {
                appendPublished(before: revision + 1)
            } else {
                append(changes[index..<end], to: batch)
                count += 1
            }
            index = end
        }
        let unstored = takeInDoubt(from: published, after: batch)
        if let last = changes.last { revisions.markStored(last.revision) }
        if !batch.isEmpty { settle(batch) }
        return (count, unstored)
    }

    /// Takes the rest of the commits in doubt; those that storage keeps nothing of are settled.
    private func takeInDoubt(from items: Range<Int>, after batch: CommitBatch) -> CommitBatch? {
        let rest = CommitBatch()
        for item in items { rest.append(published: item, of: pending.inDoubt) }
        pending.inDoubt.removeAll()
        if case .never = rest.storing {
            batch.take(rest)
            return nil
        }
        return rest
    }

    private func append(_ changes: ArraySlice<AdoptedChange>, to batch: CommitBatch) {
        var cause: InternedCause?
        for change in changes {
            let interned = change.cause.withUnsafeBytes { entries.causes.intern(bytes: $0) }
            cause = interned
            let record = makeRecord(change, interned)
            batch.append(record, entries.causes)
            put(record)
        }
        guard let cause, let revision = changes.first?.revision else { return }
        batch.endTransaction(revision: revision, cause: .passUnretained(cause), byteCount: 0)
    }

    private func makeRecord(_ change: AdoptedChange, _ cause: InternedCause) -> Record {
        var fields = change.fields
        fields.cause = cause.number
        return change.key.withUnsafeBytes { key in
            guard let value = change.value else {
                return Record.make(fields, key: key, value: nil, in: &entries.pool)
            }
            return value.withUnsafeBytes {
                Record.make(fields, key: key, value: $0, in: &entries.pool)
            }
        }
    }

    private func put(_ record: Record) {
        entries.noteChanged(record)
        if admission.countsUsage { count(record, superseding: entries.head(record.key), by: 1) }
        entries.deadlines.insert(record, at: entries.clock(), wallTime: entries.wallTime())
        guard let chain = entries.live.slot(for: record.key), let head = chain.pointee.leaf else {
            entries.begin(record)
            return
        }
        entries.removeDeadline(of: head)
        record.older = head
        chain.pointee = RadixReference(record)
    }
}

/// Values of another store.
extension KeyspaceCore {
    /// Sets a key, which belongs to `owner` if it was absent.
    ///
    /// - Throws: as ``set(_:to:appending:isConditional:expiry:isRenewal:operation:)``.
    package func set(
        _ key: Bytes,
        to value: Bytes,
        ownedBy owner: UInt32,
        expiry: Expiry
    ) throws(StateError) {
        transaction.nextOwner = owner
        defer { transaction.nextOwner = nil }
        try set(key, to: value, expiry: expiry)
    }
}
