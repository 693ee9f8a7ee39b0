import CLinux

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

extension RadixTree {
    /// A look-up that has come down to a slot.
    private struct Descent {
        var slot: UnsafeMutablePointer<RadixReference>
        var depth = 0
        var hasEnded = false
    }

    /// Brings what the look-ups of these keys read into the cache.
    ///
    /// Each level of a look-up waits for memory. Here the look-ups go down together, so the
    /// processor waits for all of them at once.
    func prefetch(_ keys: UnsafeBufferPointer<Bytes>) {
        withUnsafeTemporaryAllocation(of: Descent.self, capacity: keys.count) { descents in
            descents.initialize(repeating: Descent(slot: root))
            var isDescending = true
            while isDescending {
                isDescending = false
                for index in descents.indices where !descents[index].hasEnded {
                    let reference = descents[index].slot.pointee
                    descents[index].hasEnded = reference.isNone || reference.leaf != nil
                    if !reference.isNone { clinux_prefetch(reference.address) }
                }
                for index in descents.indices where !descents[index].hasEnded {
                    let node = descents[index].slot.pointee.node
                    let depth = descents[index].depth + node.prefixByteCount
                    guard depth <= keys[index].count,
                        let next = node.child(RadixTree.byte(keys[index], depth))
                    else {
                        descents[index].hasEnded = true
                        continue
                    }
                    clinux_prefetch(UnsafeMutableRawPointer(next))
                    descents[index] = Descent(slot: next, depth: depth + 1)
                    isDescending = true
                }
            }
        }
    }
}
