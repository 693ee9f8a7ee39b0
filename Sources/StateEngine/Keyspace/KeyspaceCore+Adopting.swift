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
    /// Nothing may be provisional except keys in memory.
    ///
    /// - Returns: The number of commits.
    func adopt(_ changes: [AdoptedChange]) -> Int {
        let batch = CommitBatch()
        var published = pending.inDoubt.items[...]
        var publishedStart = 0
        /// Appends those before a revision; each supersedes what storage had of its keys before.
        func appendPublished(before revision: Int64) {
            while let item = published.first, item.revision < revision {
                batch.append(
                    published: pending.inDoubt.changes[publishedStart..<item.changeEnd],
                    of: item
                )
                publishedStart = item.changeEnd
                published.removeFirst()
            }
        }
        var count = 0
        for (index, change) in changes.enumerated() {
            appendPublished(before: change.revision)
            let cause = change.cause.withUnsafeBytes { entries.causes.intern(bytes: $0) }
            let record = makeRecord(change, cause)
            batch.append(record)
            put(record)
            let next = index + 1 < changes.count ? changes[index + 1].fields.revision : 0
            guard next != change.fields.revision else { continue }
            batch.endTransaction(
                revision: change.fields.revision,
                cause: .passUnretained(cause),
                byteCount: 0
            )
            count += 1
        }
        appendPublished(before: .max)
        pending.inDoubt.removeAll()
        guard !batch.isEmpty else { return 0 }
        settle(batch)
        return count
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
        entries.deadlines.insert(record, at: entries.clock(), wallTime: LocalKeyspace.now())
        guard let chain = entries.live.slot(for: record.key), let head = chain.pointee.leaf else {
            entries.begin(record)
            return
        }
        entries.removeDeadline(of: head)
        record.older = head
        chain.pointee = RadixReference(record)
    }
}
