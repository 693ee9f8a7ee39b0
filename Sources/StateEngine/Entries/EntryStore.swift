/// The entries of a keyspace: for each key a chain of versions, newest first.
///
/// A chain has at most one durable version, its last; the versions before it are provisional.
/// `live` holds the chains with a version that is not a delete. `deleted` holds the keys of which
/// only a durable delete is known (the tombstone), which a later version of that key supersedes in
/// the history. So listing never walks over deleted keys.
package struct EntryStore: ~Copyable {
    private(set) var live = RadixTree()
    private(set) var deleted = RadixTree()
    /// Whether tombstones are kept: in a history, each change names the one that it supersedes.
    let keepsDeleted: Bool

    /// Entries without the provisional ones.
    package internal(set) var durableCount = 0
    /// Who wrote the versions.
    var causes = CauseTable()
    /// What versions are made from.
    var pool = RecordPool()
    /// When entries expire.
    package internal(set) var deadlines = Deadlines()
    /// Milliseconds of CLOCK_BOOTTIME, on which deadlines run; a test may set another clock.
    package var clock: @Sendable () -> Int64 = { Deadlines.now() }
    /// Whether storage has entries that expire, perhaps only superseded ones.
    var hasLoadedExpiry = false
    /// The listings that are running in slices.
    var scans: [ScanPosition] = []
    /// Bytes of all versions that were ever put.
    package internal(set) var putByteCount: Int64 = 0

    init(keepsDeleted: Bool) { self.keepsDeleted = keepsDeleted }

    /// Frees a version that nothing refers to any more.
    mutating func free(_ record: Record) {
        deadlines.remove(record)
        causes.release(record.cause)
        record.deallocate(into: &pool)
    }

    /// The newest version of `key`, provisional or durable; nil if there is none or only a durable
    /// delete.
    func head(_ key: Bytes) -> Record? { live.record(for: key) }

    /// Begins a chain with a version of a key that has no live version.
    mutating func begin(_ record: Record) {
        if deleted.count > 0, !record.isVolatile, let tombstone = deleted.record(for: record.key) {
            record.older = tombstone
            deleted.remove(record.key)
        }
        live.insert(record)
    }

    /// Takes the newest version, `record`, from the chain of its key.
    ///
    /// The caller frees it.
    ///
    /// - Returns: The version below, if it leaves the table too; the caller frees it.
    mutating func pop(_ record: Record, durableRevision: Int64) -> Record? {
        guard let older = record.older else {
            live.remove(record.key)
            return nil
        }
        if older.isDeleted, older.revision <= durableRevision {
            live.remove(record.key)
            return keepDelete(older) ? nil : older
        }
        let top = live.replace(with: older)
        precondition(top == record, "versions are undone out of order")
        return nil
    }

    /// `record`, whose older version is gone, is durable now: a delete leaves the live entries.
    ///
    /// - Returns: Whether the record left the table; the caller then frees it.
    mutating func settleDelete(_ record: Record) -> Bool {
        guard live.record(for: record.key) == record else { return false }
        live.remove(record.key)
        return !keepDelete(record)
    }

    /// Keeps the stored delete of a key that has moved to memory; the table owns it.
    mutating func keepTombstone(_ tombstone: Record) { deleted.insert(tombstone) }

    /// Removes the durable delete of `key` that was made at `revision`, even if a provisional
    /// version supersedes it.
    ///
    /// - Returns: That delete, which the caller frees; nil if it is no longer known.
    mutating func forgetDelete(of key: Bytes, at revision: Int64) -> Record? {
        if let tombstone = deleted.record(for: key) {
            guard tombstone.revision == revision else { return nil }
            deleted.remove(key)
            return tombstone
        }
        var version = live.record(for: key)
        while let newer = version, let older = newer.older {
            if older.revision == revision, older.isDeleted {
                // A change on its way to storage has copied its position already and may name what
                // is compacted.
                newer.older = nil
                return older
            }
            version = older
        }
        return nil
    }

    /// - Returns: Whether the table keeps it.
    private mutating func keepDelete(_ record: Record) -> Bool {
        guard keepsDeleted, !record.isVolatile else { return false }
        deleted.insert(record)
        return true
    }

    /// Takes a durable version from storage.
    ///
    /// - Returns: The version that it supersedes, which the caller frees.
    mutating func load(_ record: Record) -> Record? {
        if let slot = live.slot(for: record.key), let old = slot.pointee.leaf {
            if record.isDeleted {
                live.remove(record.key)
                _ = keepDelete(record)
            } else {
                slot.pointee = RadixReference(record)
            }
            return old
        }
        let tombstone = deleted.count > 0 ? deleted.record(for: record.key) : nil
        if tombstone != nil { deleted.remove(record.key) }
        if record.isDeleted { _ = keepDelete(record) } else { live.insert(record) }
        return tombstone
    }

    /// Frees every record and leaves the table empty.
    mutating func deallocateAll() {
        defer { pool.drain() }
        func deallocate(_ tree: borrowing RadixTree) {
            tree.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { record in
                var next: Record? = record
                while let version = next {
                    next = version.older
                    version.deallocate()
                }
                return true
            }
        }
        deallocate(live)
        deallocate(deleted)
        live = RadixTree()
        deleted = RadixTree()
    }
}

extension EntryStore {
    /// Records for the listings that the newest version of a key has changed.
    @inline(__always)
    func noteScanned(_ key: Bytes) {
        if !scans.isEmpty { EntryStore.note(key, in: scans) }
    }

    // A static function: for a method of the store, the compiler copied its 144 bytes for each SET
    // (callgrind).
    @inline(never)
    private static func note(_ key: Bytes, in scans: [ScanPosition]) {
        for scan in scans { scan.note(key) }
    }
}
