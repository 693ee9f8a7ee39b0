/// The entries of a keyspace: for each key a chain of versions, newest first.
///
/// A chain has one durable version at most, its last; the versions before it are provisional. `live` holds the chains with a
/// version that is no delete; `deleted` holds the keys of which nothing but a durable delete is known, which is what a
/// later version of that key supersedes in the history. So listing never walks over what is gone.
package struct EntryStore: ~Copyable {
    private(set) var live = RadixTree()
    private(set) var deleted = RadixTree()
    /// Whether deletes are remembered: where there is a history, each change names the one that it supersedes.
    let keepsDeleted: Bool

    /// Entries without the provisional ones.
    package internal(set) var durableCount = 0
    /// Who wrote the versions.
    var causes = CauseTable()
    /// What versions are made from.
    var pool = RecordPool()
    /// When entries expire.
    package internal(set) var deadlines = Deadlines()
    /// Milliseconds of CLOCK_BOOTTIME, which deadlines run on; a test may have another.
    package var clock: @Sendable () -> Int64 = { Deadlines.now() }
    /// Whether storage has entries that expire, perhaps superseded ones only.
    var hasLoadedExpiry = false
    /// The listings that are made in slices.
    var scans: [ScanPosition] = []
    /// Bytes of all versions that were put, whatever has become of them.
    package internal(set) var putByteCount: Int64 = 0

    init(keepsDeleted: Bool) { self.keepsDeleted = keepsDeleted }

    /// A version that nothing refers to any more goes.
    mutating func free(_ record: Record) {
        deadlines.remove(record)
        causes.release(record.cause)
        record.deallocate(into: &pool)
    }

    /// The newest version of `key`, provisional or durable; nil where there is none or only a durable delete.
    func head(_ key: Bytes) -> Record? { live.record(for: key) }

    /// Begins a chain with a version of a key that has none that is live.
    mutating func begin(_ record: Record) {
        if deleted.count > 0, !record.isVolatile, let grave = deleted.record(for: record.key) {
            record.older = grave
            deleted.remove(record.key)
        }
        live.insert(record)
    }

    /// Takes the newest version, `record`, off the chain of its key.
    ///
    /// The caller frees it.
    ///
    /// - Returns: The version below, where it leaves the table too, so that the caller frees it.
    mutating func pop(_ record: Record, durableRevision: Int64) -> Record? {
        guard let older = record.older else {
            live.remove(record.key)
            return nil
        }
        if older.isDeleted, older.revision <= durableRevision {
            live.remove(record.key)
            return bury(older) ? nil : older
        }
        let top = live.replace(with: older)
        precondition(top == record, "versions are undone out of order")
        return nil
    }

    /// `record`, whose older version is gone, is durable now: a delete leaves the entries.
    ///
    /// - Returns: Whether the record left the table, so that the caller frees it.
    mutating func settleDelete(_ record: Record) -> Bool {
        guard live.record(for: record.key) == record else { return false }
        live.remove(record.key)
        return !bury(record)
    }

    /// Remembers the stored delete of a key that has moved to memory; the table owns it.
    mutating func keepTombstone(_ grave: Record) { deleted.insert(grave) }

    /// Forgets the durable delete of `key` that was made at `revision`, also where a provisional version supersedes it.
    ///
    /// - Returns: That delete, which the caller frees; nil where it is no longer known.
    mutating func forgetDelete(of key: Bytes, at revision: Int64) -> Record? {
        if let grave = deleted.record(for: key) {
            guard grave.revision == revision else { return nil }
            deleted.remove(key)
            return grave
        }
        var version = live.record(for: key)
        while let newer = version, let older = newer.older {
            if older.revision == revision, older.isDeleted {
                // What is on its way to storage has noted its place already, which may name what is compacted.
                newer.older = nil
                return older
            }
            version = older
        }
        return nil
    }

    /// - Returns: Whether the table keeps it.
    private mutating func bury(_ record: Record) -> Bool {
        guard keepsDeleted, !record.isVolatile else { return false }
        deleted.insert(record)
        return true
    }

    /// Takes a durable version over from storage.
    ///
    /// - Returns: The version that it supersedes, which the caller frees.
    mutating func load(_ record: Record) -> Record? {
        if let slot = live.slot(for: record.key), let old = slot.pointee.leaf {
            if record.isDeleted {
                live.remove(record.key)
                _ = bury(record)
            } else {
                slot.pointee = RadixReference(record)
            }
            return old
        }
        let grave = deleted.count > 0 ? deleted.record(for: record.key) : nil
        if grave != nil { deleted.remove(record.key) }
        if record.isDeleted { _ = bury(record) } else { live.insert(record) }
        return grave
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
    /// The newest version of a key has changed.
    @inline(__always)
    func noteScanned(_ key: Bytes) {
        if !scans.isEmpty { EntryStore.note(key, in: scans) }
    }

    // Not of the store itself: to call a method of it, the compiler copied its 144 bytes for each SET (callgrind).
    @inline(never)
    private static func note(_ key: Bytes, in scans: [ScanPosition]) {
        for scan in scans { scan.note(key) }
    }
}
