/// Changes of a cluster.
extension KeyspaceCore {
    /// The keys that a cluster has; nil if there are none.
    package var mirrored: MirroredPrefix? { admission.mirrored }

    /// How often a key of a cluster was set since it was created, as its newest version has it; 0
    /// if it is absent.
    package func mirroredVersion(of key: Bytes) -> Int64 {
        guard let head = entries.head(key), !head.isDeleted else { return 0 }
        return head.version
    }

    /// Makes a change that the cluster has decided, in the open transaction.
    ///
    /// No rule is asked, and the transaction may be of any size: the cluster has the change already,
    /// and here it must become one commit, too.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The bytes; nil deletes it.
    ///   - version: How often the cluster's key was set since it was created.
    ///   - expires: When it ends by itself, in milliseconds since 1970; nil if it does not.
    /// - Throws: ``StateError/Code/tooBig`` for a value over the limit,
    ///   ``StateError/Code/readOnly`` while the store is reopened or revisions are not reserved, or
    ///   ``StateError/Code/noSpace`` if the disk is full or memory is short; the transaction stays
    ///   open and unchanged.
    package func mirror(
        _ key: Bytes,
        _ value: Bytes?,
        version: Int64,
        expires: Int64? = nil
    ) throws(StateError) {
        let chain = entries.live.slot(for: key)
        let current = chain?.pointee.leaf.flatMap { $0.isDeleted ? nil : $0 }
        try admission.refusals.check(isVolatile: false)
        try revisions.checkReserved(transaction.revision)
        if let value {
            try checkSize(value.count, of: key)
            if admission.refusals.diskShortage != nil { throw admission.refusals.refuse() }
            try checkMemory(for: value.count, superseding: current)
        } else if current == nil {
            return
        }
        transaction.durability = .synced
        // A number that has not risen counts from another creation of the key.
        let isAnew = value != nil && version <= current?.version ?? 0
        var fields = fields(of: isAnew ? nil : current, version: value == nil ? 0 : version)
        fields.expires = value == nil ? nil : expires
        fields.isDeferrable = isDeferrable(decided: key)
        put(
            Record.make(fields, key: key, value: value, in: &entries.pool),
            onto: chain,
            due: fields.expires.map { due(at: $0) }
        )
    }

    /// Whether storage may have a change later that the cluster has decided: of rules, only this is
    /// asked.
    func isDeferrable(decided key: Bytes) -> Bool { isDeferrable(key, rules?.rule(for: key)) }

    /// Calls `body` for the newest version of each key of the cluster after `key` and up to `last`,
    /// in key order.
    package func forEachMirrored(
        after key: [UInt8]?,
        through last: Bytes?,
        _ body: (Record) -> Void
    ) {
        guard let mirrored else { return }
        func visit(_ record: Record) -> Bool {
            if let last, last.precedes(record.key) { return false }
            if !record.isDeleted { body(record) }
            return true
        }
        mirrored.bytes.withUnsafeBytes { prefix in
            guard let key else { return entries.live.forEach(prefix: prefix, after: nil, visit) }
            key.withUnsafeBytes { entries.live.forEach(prefix: prefix, after: $0, visit) }
        }
    }
}
