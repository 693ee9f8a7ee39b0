/// Changes of keys of a cluster: the command is carried out, and what it did is taken and undone.
/// The cluster decides, and what it has decided is carried out again.
extension KeyspaceCore {
    /// Above so many deletes, all keys with their common beginning are deleted at once, if these
    /// are all.
    private static let singleDeletes = 32

    // MARK: What the open transaction does

    @inline(never)
    func noteRead(of key: Bytes, _ head: Record?) {
        guard transaction.isOpen, !transaction.isDecided, let use = transaction.cluster,
            let mirrored = admission.mirrored
        else { return }
        guard mirrored.holds(key) else { return use.noteOther() }
        // What the transaction itself has set depends on what was there before.
        let known = head?.revision == transaction.revision ? head?.older : head
        use.noteRead(key, isPresent: known.map { !$0.isDeleted } ?? false)
    }

    /// The open transaction depends on all keys with a prefix.
    package func noteRead(of pattern: Pattern) {
        guard let use = transaction.cluster, let mirrored = admission.mirrored,
            !transaction.isDecided, pattern.kind != .key, mirrored.meets(pattern)
        else { return }
        use.note(pattern.literal.starts(with: mirrored.bytes) ? pattern.literal : mirrored.bytes)
    }

    @inline(never)
    func noteChange(
        of key: Bytes,
        _ expiry: Expiry,
        _ rule: KeyRule?,
        _ head: Record?
    ) throws(StateError) {
        guard !transaction.isDecided, let mirrored = admission.mirrored,
            let use = transaction.cluster
        else { return }
        guard mirrored.holds(key) else { return use.noteOther() }
        guard !mirrored.isOwn(key) else { throw mirrored.refusal(of: key) }
        try requireLink(key, mirrored)
        use.noteChange(key)
        switch expiry {
        case .with: throw KeyspaceCore.cannotBeHeld(key)
        case .kept: noteRead(of: key, head)
        case .after: use.noteRelative(key)
        case .ruled: if rule?.lifetimeMilliseconds != nil { use.noteRelative(key) }
        case .at, .never: break
        }
        guard let rule else { return }
        // What a rule has judged must be so there, too.
        let isJudged = transaction.subject != nil && rule.access.limitsAnything
        if isJudged || rule.values.writeOnceRule != nil { noteRead(of: key, head) }
        if rule.quotas.amounts.contains(where: { $0.limit != .valueBytes }) { use.noteCounted() }
    }

    /// Whether a key may be deleted; one of the link's own stays.
    @inline(never)
    func mayDelete(_ key: Bytes) throws(StateError) -> Bool {
        guard !transaction.isDecided, let mirrored = admission.mirrored,
            let use = transaction.cluster
        else { return true }
        guard mirrored.holds(key) else {
            use.noteOther()
            return true
        }
        guard !mirrored.isOwn(key) else { return false }
        if let head = entries.head(key), !head.isDeleted {
            try requireLink(key, mirrored)
            use.noteChange(key)
        }
        return true
    }

    private static func cannotBeHeld(_ key: Bytes) -> StateError {
        StateError(
            .rejected,
            "key \(StateError.quoted(key)) belongs to the cluster, where keys do not end with "
                + "clients or processes: set it with a time, or without one"
        )
    }

    private func requireLink(_ key: Bytes, _ mirrored: MirroredPrefix) throws(StateError) {
        guard let link = admission.clusterLink else { throw mirrored.refusal(of: key) }
        if let refusal = link.refusal { throw refusal }
    }

    /// What the open transaction would change in the cluster; it must be rolled back then.
    ///
    /// - Throws: ``StateError/Code/rejected`` if it has keys of the cluster and others, or
    ///   ``StateError/Code/away`` if the cluster cannot be asked.
    package func takeAttempt() throws(StateError) -> ClusterAttempt {
        guard let use = transaction.cluster, let mirrored = admission.mirrored,
            let cause = transaction.cause
        else { preconditionFailure("no transaction concerns a cluster") }
        guard !use.hasOthers else {
            let key = use.changed ?? use.reads.keys.first ?? []
            throw StateError(
                .rejected,
                "key \(key.withUnsafeBytes { StateError.quoted($0) }) belongs to the cluster, and other "
                    + "keys here do not: use a transaction for each"
            )
        }
        if let refusal = admission.clusterLink?.refusal { throw refusal }
        let changes = try transaction.changes.compactMap { $0 }.map {
            (change) throws(StateError) in
            ClusterAttempt.Change(
                key: Array(change.key),
                value: change.value.map { Array($0) },
                expires: try attemptedExpiry(of: change, use)
            )
        }
        let deleted = deletedRanges(changes, mirrored)
        var reads = use.reads
        // Of what is deleted as a whole, only what is new matters.
        if !deleted.isEmpty { for change in changes { reads[change.key] = nil } }
        return ClusterAttempt(
            changes: changes,
            reads: reads,
            ranges: use.prefixes.flatMap { mirrored.ranges(of: $0) } + deleted,
            deleted: deleted,
            cause: cause._withUnsafeGuaranteedRef { $0.bytes },
            isAlone: use.isCounted
        )
    }

    private func attemptedExpiry(
        of change: Record,
        _ use: ClusterUse
    ) throws(StateError) -> Int64? {
        if change.isHeld { throw KeyspaceCore.cannotBeHeld(change.key) }
        guard let expires = change.expires else { return nil }
        guard expires <= ClusterAttempt.latest else {
            throw StateError(
                .rejected,
                "key \(StateError.quoted(change.key)) belongs to the cluster, where no time is after "
                    + "the year 10888: set it without one"
            )
        }
        let isFar = expires - transaction.time > ClusterAttempt.exactTime
        guard isFar || use.relative.contains(Array(change.key)) else { return expires }
        return min(ClusterAttempt.rounded(expires, from: transaction.time), ClusterAttempt.latest)
    }

    /// The ranges whose keys are all deleted, instead of many deletes.
    private func deletedRanges(
        _ changes: [ClusterAttempt.Change],
        _ mirrored: MirroredPrefix
    ) -> [ClusterAttempt.Range] {
        guard changes.count > KeyspaceCore.singleDeletes, let first = changes.first?.key,
            changes.allSatisfy({ $0.value == nil })
        else { return [] }
        var count = first.count
        for change in changes {
            count = zip(first.prefix(count), change.key).prefix { $0 == $1 }.count
        }
        guard let end = first.prefix(count).lastIndex(of: UInt8(ascii: "/")) else { return [] }
        let prefix = Array(first[...end])
        var isWhole = prefix.starts(with: mirrored.bytes)
        prefix.withUnsafeBytes { bytes in
            entries.live.forEach(prefix: bytes, after: nil) { record in
                if !record.isDeleted, !isDue(record), !mirrored.isOwn(record.key) {
                    isWhole = false
                }
                return isWhole
            }
        }
        return isWhole ? mirrored.ranges(of: prefix) : []
    }

    // MARK: What the cluster has decided

    /// What follows in the open transaction was decided by the cluster, and written by `cause`.
    ///
    /// - Parameters:
    ///   - cause: Who wrote it; retained until the transaction has ended.
    ///   - owner: The owner of what it creates; nil for the writer.
    ///   - subject: Who sees what a command reads; nil if that is everything.
    package func goOnDecided(
        by cause: InternedCause,
        owner: UInt32?,
        seenBy subject: Subject? = nil
    ) {
        transaction.isDecided = true
        transaction.nextOwner = owner
        transaction.subject = subject
        transaction.goOn(as: cause)
    }

    /// How many changes the open transaction has made, also of those that it reversed.
    package var changeCount: Int { transaction.changes.count }

    /// Undoes the changes of the open transaction from one on.
    package func undoChanges(from start: Int) {
        while transaction.changes.count > start {
            guard let change = transaction.changes.removeLast() else { continue }
            transaction.byteCount -= change.byteCount
            undo(change)
        }
    }

    /// Whether the changes of the open transaction from one on are those that the cluster has made;
    /// they get its versions.
    ///
    /// - Parameters:
    ///   - start: The first of them.
    ///   - decided: The changes of the cluster.
    /// - Returns: Whether they are the same.
    package func conforms(
        from start: Int,
        to decided: [[UInt8]: ClusterAttempt.Decided]
    ) -> Bool {
        let made = transaction.changes[start...].compactMap { $0 }
        guard made.count == decided.count else { return false }
        // A time that was given from now on was computed when the command came.
        for change in made {
            guard let other = decided[Array(change.key)] else { return false }
            switch (change.value, other.value) {
            case (nil, nil): continue
            case (let value?, let expected?) where value.isEqual(to: expected): break
            default: return false
            }
            guard change.count(as: other.version) else { return false }
            if change.hasDeadline || other.expires != nil {
                setDeadline(of: change, to: other.expires)
            }
        }
        return true
    }
}

extension Record {
    /// Gives a version of the open transaction the number that the cluster has counted: a key that
    /// was deleted and set in one transaction is the same there.
    ///
    /// - Returns: Whether it has room for that number.
    fileprivate func count(as version: Int64) -> Bool {
        guard version != self.version else { return true }
        let same = version > 1 ? older.flatMap { $0.isDeleted ? nil : $0 } : nil
        return recount(created: same?.created ?? created, version: version)
    }
}
