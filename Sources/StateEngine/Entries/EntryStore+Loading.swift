/// The beginning and the end of the table.
extension EntryStore {
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
