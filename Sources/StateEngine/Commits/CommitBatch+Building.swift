/// A batch made of plain changes, for tests and benchmarks of backings: it owns its records.
package final class BuiltBatch: @unchecked Sendable {
    /// One change, with everything that a record keeps.
    package struct Change: Hashable, Sendable {
        package var revision: Int64
        package var ordinal: Int32
        package var key: [UInt8]
        package var value: [UInt8]?
        package var created: Int64
        package var owner: UInt32
        package var version: Int64
        package var time: Int64
        /// ``Cause/description`` in UTF-8, one for all changes of a revision; empty if nobody made
        /// it.
        package var cause: [UInt8]
        package var previousRevision: Int64
        package var previousOrdinal: Int32
        /// As ``StoredChange/expires``.
        package var expires: Int64?

        package init(
            revision: Int64,
            ordinal: Int32 = 0,
            key: [UInt8],
            value: [UInt8]?,
            created: Int64,
            owner: UInt32 = 0,
            version: Int64 = 1,
            time: Int64 = 0,
            cause: [UInt8] = [],
            previousRevision: Int64 = 0,
            previousOrdinal: Int32 = 0,
            expires: Int64? = nil
        ) {
            self.revision = revision
            self.ordinal = ordinal
            self.key = key
            self.value = value
            self.created = created
            self.owner = owner
            self.version = version
            self.time = time
            self.cause = cause
            self.previousRevision = previousRevision
            self.previousOrdinal = previousOrdinal
            self.expires = expires
        }
    }

    // Constant after `init`, so the object may move to another thread: the proof of `@unchecked
    // Sendable`.
    private let batch = CommitBatch()
    private var causes = CauseTable()
    private var records: [Record] = []

    /// Makes the batch.
    ///
    /// - Parameter changes: In order of revision and ordinal; those of one revision are one
    ///   transaction.
    package init(_ changes: [Change]) {
        var start = 0
        while start < changes.count {
            var end = start
            while end < changes.count, changes[end].revision == changes[start].revision { end += 1 }
            append(changes[start..<end])
            start = end
        }
    }

    deinit { for record in records { record.deallocate() } }

    /// Commits the batch to `backing`; its records live for that call.
    package func commit(to backing: some Backing) throws {
        try withExtendedLifetime(self) { try backing.commit(batch) }
    }

    private func append(_ transaction: ArraySlice<Change>) {
        guard let first = transaction.first else { return }
        let cause = first.cause.withUnsafeBytes { causes.intern(bytes: $0) }
        let made = transaction.map { make($0, cause: cause.number) }
        let byteCount = made.reduce(0) { $0 + $1.byteCount }
        for change in made { batch.append(change, causes) }
        batch.endTransaction(
            revision: first.revision,
            cause: .passUnretained(cause),
            byteCount: byteCount
        )
    }

    private func make(_ change: Change, cause: UInt32) -> Record {
        let record = make(
            Record.Fields(
                revision: change.revision,
                created: change.created,
                version: change.version,
                time: change.time,
                ordinal: change.ordinal,
                owner: change.owner,
                cause: cause,
                expires: change.expires
            ),
            key: change.key,
            value: change.value
        )
        if change.previousRevision > 0 {
            record.older = make(
                Record.Fields(
                    revision: change.previousRevision,
                    created: change.created,
                    version: 0,
                    time: 0,
                    ordinal: change.previousOrdinal,
                    owner: 0,
                    cause: cause
                ),
                key: change.key,
                value: nil
            )
        }
        return record
    }

    private func make(_ fields: Record.Fields, key: [UInt8], value: [UInt8]?) -> Record {
        let record = key.withUnsafeBytes { key in
            guard let value else { return Record.make(fields, key: key, value: nil) }
            return value.withUnsafeBytes { Record.make(fields, key: key, value: $0) }
        }
        records.append(record)
        return record
    }
}

extension BuiltBatch.Change {
    /// A copy of a change whose bytes are borrowed.
    package init(_ change: borrowing StoredChange) {
        self.init(
            revision: change.revision,
            ordinal: change.ordinal,
            key: Array(change.key),
            value: change.value.map { Array($0) },
            created: change.created,
            owner: change.owner,
            version: change.version,
            time: change.time,
            cause: Array(change.cause),
            previousRevision: change.previousRevision,
            previousOrdinal: change.previousOrdinal,
            expires: change.expires
        )
    }
}

extension CommitBatch {
    /// The revision of the first transaction; 0 if there is none.
    public var firstRevision: Int64 { items.first?.revision ?? 0 }

    /// The revision of the first transaction that a failure undoes, or nil.
    var firstUndoneRevision: Int64? {
        items.indices.first { !isPublished($0) }.map { items[$0].revision }
    }
}

extension Record {
    /// The delete that removes its key from storage.
    func storedDelete(cause: Bytes, superseding older: CommitBatch.Superseded) -> StoredChange {
        var change = stored(cause: cause, superseding: older)
        change.value = nil
        change.version = 0
        change.expires = nil
        return change
    }
}

extension CommitBatch {
    /// Appends a transaction of `other`, which is published already.
    func append(published item: Int, of other: CommitBatch) {
        let start = item == 0 ? 0 : other.contents.items[item - 1].changeEnd
        let end = other.contents.items[item].changeEnd
        var byteCount = 0
        for part in other.contents.parts where part.changeEnd > start && part.changeEnd <= end {
            contents.parts.append((contents.changes.count + part.changeEnd - start, part.cause))
        }
        for index in start..<end {
            let change = other.contents.changes[index]
            append(change, superseding: other.contents.superseded[index])
            byteCount += change.byteCount
        }
        noteDelay(other.contents.delay)
        let own = other.items[item].revision
        append(other.contents.metadata.filter { $0.revision == own })
        let (revision, cause) = (other.items[item].revision, other.items[item].cause)
        endTransaction(revision: revision, cause: cause, byteCount: byteCount)
    }
}
