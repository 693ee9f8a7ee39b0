/// Other rules, and the keys that live elsewhere by them.
///
/// A move to memory is a delete in storage. Where its outcome is unknown it is undone as all else is; should storage have it after all,
/// the keys go to memory with the values that they have (``adopt(_:)``). So that these are still what has moved, and nothing is newer than
/// what is adopted, no key that the old rules and the new ones keep in different places is written until the store is open again.
extension KeyspaceCore {
    /// The last move of keys, until it is durable.
    struct Move {
        var revision: Int64
        /// What held before.
        var formerRules: KeyRules?
    }

    /// From here on other rules hold, and keys that live elsewhere by them move, as one commit.
    ///
    /// Stored values stay as they are, also where the new rules would refuse them.
    ///
    /// - Parameters:
    ///   - new: Which ones; nil for none.
    ///   - cause: Who has them exchanged.
    ///   - time: Wall time in milliseconds since 1970.
    /// - Returns: How many keys have moved.
    /// - Throws: ``StateError/Code/tooBig``, where they are more than a transaction may hold; the old rules stay.
    /// - Complexity: O(*n*) in the keys, where some are in memory or limited by the old rules or the new ones.
    @discardableResult
    package func exchange(
        rules new: KeyRules?,
        cause: InternedCause,
        at time: Int64
    ) throws(StateError) -> Int {
        let (old, kept) = (rules, memoryKeys.areUsed)
        // Without any, a write need not ask.
        rules = new.flatMap { $0.isEmpty ? nil : $0 }
        let patterns = isPersistent ? new?.memoryPatterns ?? [] : []
        memoryKeys.areUsed = kept || !patterns.isEmpty
        // Where memory may have lost what was told, the history says nothing of it.
        if memoryKeys.areUsed, !kept { memoryKeys.lastRevision = revisions.durable }
        do throws(StateError) {
            // Order matters: what moves is counted by the new rules.
            recount()
            let count = try memoryKeys.areUsed ? moveAll(from: old, cause, at: time) : 0
            memoryKeys.patterns += patterns.filter { !memoryKeys.patterns.contains($0) }
            return count
        } catch {
            (rules, memoryKeys.areUsed) = (old, kept)
            recount()
            throw error
        }
    }

    /// The rules hold again that an exchange has replaced whose move was undone.
    ///
    /// This cannot fail, for nothing moves: keys that were written meanwhile stay where they are until ``moveAstray(_:at:)``.
    package func restore(rules old: KeyRules?) {
        rules = old.flatMap { $0.isEmpty ? nil : $0 }
        recount()
    }

    /// Moves keys that live elsewhere than the rules say, as one commit: as many as a transaction holds.
    ///
    /// - Returns: How many; 0 where all are where they belong.
    /// - Throws: ``StateError/Code/readOnly``, while the store is reopened or revisions are at their ceiling; ``StateError/Code/tooBig``,
    ///   where a transaction holds not even one. All are where they were.
    /// - Complexity: O(*n*) in the keys, where some are in memory.
    package func moveAstray(_ cause: InternedCause, at time: Int64) throws(StateError) -> Int {
        guard memoryKeys.areUsed else { return 0 }
        let (keys, _) = astray(limits.transactionChangeCount, limits.transactionByteCount)
        try move(keys, from: rules, cause, at: time)
        return keys.count
    }

    private func moveAll(
        from old: KeyRules?,
        _ cause: InternedCause,
        at time: Int64
    ) throws(StateError) -> Int {
        let (keys, byteCount) = astray(.max, .max)
        do throws(StateError) {
            try move(keys, from: old, cause, at: time)
        } catch {
            throw StateError(
                error.code,
                "\(keys.count) keys with \(byteCount) bytes would move to another backing: \(error.message); "
                    + "move them by parts: statectl export PATTERN > FILE, statectl delete PATTERN, reload, "
                    + "statectl import FILE"
            )
        }
        return keys.count
    }

    /// Keys that live elsewhere than the rules say, up to so many and so many bytes, but one where there is one.
    private func astray(_ countLimit: Int, _ byteLimit: Int) -> (keys: [[UInt8]], byteCount: Int) {
        var keys: [[UInt8]] = []
        var byteCount = 0
        entries.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { head in
            guard isAstray(head) else { return true }
            let isWithin = keys.count < countLimit && byteCount + head.byteCount <= byteLimit
            guard keys.isEmpty || isWithin else { return false }
            keys.append(Array(head.key))
            byteCount += head.byteCount
            return true
        }
        return (keys, byteCount)
    }

    private func isAstray(_ head: Record) -> Bool {
        !head.isDeleted && isInMemory(rules?.rule(for: head.key)) != head.isVolatile
    }

    private func move(
        _ keys: [[UInt8]],
        from old: KeyRules?,
        _ cause: InternedCause,
        at time: Int64
    ) throws(StateError) {
        guard !keys.isEmpty else { return }
        var receipt = Receipt()
        begin(cause, at: time)
        do throws(StateError) {
            for key in keys {
                try key.withBorrowed { (key) throws(StateError) in try move(key) }
            }
        } catch {
            rollBack()
            throw error
        }
        memoryKeys.lastMove = Move(revision: finish(&receipt), formerRules: old)
    }

    private func move(_ key: Bytes) throws(StateError) {
        guard let chain = entries.live.slot(for: key), let head = chain.pointee.leaf else { return }
        let isVolatile = !head.isVolatile
        try checkRoom(head.byteCount, isVolatile: false)
        var fields = fields(of: head, version: head.version)
        fields.expires = head.expires
        fields.isVolatile = isVolatile
        // What storage begins to keep begins there.
        if !isVolatile { fields.created = transaction.revision }
        put(Record.make(fields, key: key, value: head.value, in: &entries.pool), onto: chain)
    }

    /// Whether a change of a key in memory stands on a move that storage may have and may not.
    func isMoveInDoubt(of key: Bytes, _ head: Record?) -> Bool {
        if let head, isAstray(head) { return true }
        guard let lastMove = memoryKeys.lastMove, lastMove.revision > revisions.durable else {
            return false
        }
        let wasInMemory = lastMove.formerRules?.rule(for: key)?.isInMemory ?? false
        return wasInMemory != isInMemory(rules?.rule(for: key))
    }

    /// The entry that a delete of the last move has left in memory; nil where the change is none of these.
    func moved(_ change: AdoptedChange) -> Record? {
        guard change.value == nil, change.revision == memoryKeys.lastMove?.revision,
            let head = change.key.withUnsafeBytes({ entries.head($0) }), !head.isDeleted,
            !head.isVolatile
        else { return nil }
        return head
    }
}
