extension KeyspaceCore {
    /// Compares chains, counts and causes with each other, outside of a transaction; for tests.
    ///
    /// - Parameter retainedCauseCount: How many causes the caller has retained and not released.
    /// - Returns: The faults, a sentence each; empty if there are none.
    /// - Complexity: O(*n*) in the bytes of all keys, times the depth of the trees.
    package func checkInvariants(retainedCauseCount: Int) -> [String] {
        var faults = entries.live.checkInvariants() + entries.deleted.checkInvariants()
        var namedCount = 0
        var liveCount = 0
        var memoryCount = 0
        var provisionalByteCount = 0
        var deadlineCount = 0
        forEachChain(of: entries.live) { chain in
            checkChain(chain, &faults)
            namedCount += chain.count
            if chain[0].hasDeadline { deadlineCount += 1 }
            if let last = chain.last, last.revision <= revisions.durable, !last.isDeleted {
                liveCount += 1
                if last.isVolatile { memoryCount += 1 }
            }
            for record in chain where record.revision > revisions.durable {
                provisionalByteCount += record.byteCount
            }
        }
        forEachChain(of: entries.deleted) { chain in
            let shown = StateError.quoted(chain[0].key)
            namedCount += chain.count
            if chain.count > 1 || !chain[0].isDeleted || chain[0].revision > revisions.durable {
                faults.append("\(shown) is a tombstone, but not just a durable delete")
            }
            if let head = entries.head(chain[0].key),
                !sequence(first: head, next: \.older)
                    .contains(where: \.isVolatile)
            {
                faults.append("\(shown) is a tombstone, but live")
            }
        }
        let deadlines = entries.deadlines.count + entries.deadlines.holders.keyCount
        compare(deadlineCount, deadlines, "deadlines", &faults)
        if !entries.deadlines.holders.isInOrder { faults.append("a holder has another's key") }
        if !entries.deadlines.isInOrder { faults.append("the deadlines are out of order") }
        compare(liveCount, entries.durableCount, "durable keys", &faults)
        compare(memoryCount, memoryKeys.count, "keys in memory only", &faults)
        compare(provisionalByteCount, pending.byteCount, "uncommitted bytes", &faults)
        compare(
            namedCount + retainedCauseCount,
            entries.causes.referenceCount,
            "references to causes",
            &faults
        )
        return faults
    }

    private func compare(_ found: Int, _ counted: Int, _ what: String, _ faults: inout [String]) {
        if found != counted { faults.append("\(found) \(what), but the count is \(counted)") }
    }

    /// A chain has descending revisions, at most one durable version, its last, and at least one
    /// that is not a delete.
    private func checkChain(_ chain: [Record], _ faults: inout [String]) {
        let shown = StateError.quoted(chain[0].key)
        for (newer, older) in zip(chain, chain.dropFirst()) {
            if newer.revision <= older.revision { faults.append("\(shown) is out of order") }
            if newer.revision <= revisions.durable {
                faults.append("\(shown) keeps what is superseded")
            }
            if !newer.key.isEqual(to: older.key) { faults.append("\(shown) has another's version") }
        }
        if chain.allSatisfy(\.isDeleted) { faults.append("\(shown) is live and only deleted") }
    }

    /// The versions of each key, newest first.
    private func forEachChain(of tree: borrowing RadixTree, _ body: ([Record]) -> Void) {
        tree.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { head in
            body(Array(sequence(first: head, next: \.older)))
            return true
        }
    }
}
