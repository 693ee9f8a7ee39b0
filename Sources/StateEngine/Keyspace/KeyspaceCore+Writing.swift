extension KeyspaceCore {
    /// Opens a transaction; every one is finished or rolled back before the lock is given up.
    ///
    /// - Parameters:
    ///   - cause: Who writes; retained until the transaction has ended.
    ///   - time: Wall time in milliseconds since 1970.
    ///   - subject: Who has to be allowed what it does; nil where everything is.
    package func begin(_ cause: InternedCause, at time: Int64, by subject: Subject? = nil) {
        precondition(openRevision == 0, "a transaction is open")
        openSubject = subject
        openRevision = newestRevision + 1
        openTime = time
        openCause = .passUnretained(cause)
        openDurability = .memory
    }

    /// Sets `key` to `value`, followed by `suffix` where there is one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The bytes.
    ///   - suffix: More of them.
    ///   - isConditional: Whether who writes has made it depend on what the key was: then he has to be allowed to read it.
    /// - Throws: ``StateError/Code/tooBig``, for a value or transaction over its limit, what the ``KeyRules`` refuse,
    ///   ``StateError/Code/readOnly`` while the store is reopened or revisions are at their ceiling,
    ///   ``StateError/Code/noSpace`` if the disk is full or a value would take memory that there is not, or what an ``EditableBacking`` refuses; the transaction stays open as it was.
    /// - Complexity: O(*n*) in the bytes of key and value.
    package func set(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes? = nil,
        isConditional: Bool = false
    )
        throws(StateError)
    {
        let rule = rules?.rule(for: key)
        let chain = table.chain(key)
        let head = chain?.pointee.leaf
        var hidden: HiddenKey?
        if let openSubject, let rule {
            hidden = try checkWriting(key, head, rule, openSubject, isConditional: isConditional)
        }
        let byteCount = value.count + (suffix?.count ?? 0)
        guard byteCount <= limits.valueByteCount else {
            throw valueTooBig(byteCount, key)
        }
        let isVolatile = isInMemory(rule)
        try checkRoom(key.count + byteCount, isVolatile: isVolatile)
        if isVolatile { try checkMove(of: key, head) } else if let shortage { throw shortage }
        let last = head.flatMap { $0.isDeleted ? nil : $0 }
        if let memoryShortage, byteCount > last?.value?.count ?? -1 { throw memoryShortage }
        let current = last.flatMap { isDue($0) ? nil : $0 }
        if let rule {
            let isHidden = hidden != nil
            try rule.checkSet(
                key,
                to: value,
                appending: suffix,
                isPresent: !isHidden && current != nil
            )
            try checkQuota(rule, key, byteCount, superseding: isHidden ? nil : last)
        }
        // Order matters: what tells of other keys comes last, so that only who could set the key is told.
        if let editable { try checkPlace(of: key, in: editable) }
        if let files { try checkFile(of: key, in: files) }
        if let hidden, let rule, let openSubject { try check(hidden, key, rule, openSubject) }
        var fields = fields(of: current, version: (current?.version ?? 0) + 1)
        if let owner = ownerKept(by: head) { fields.owner = owner }
        fields.isVolatile = isVolatile
        take(rule, &fields)
        put(
            Record.make(
                fields,
                key: key,
                value: value,
                appending: suffix,
                in: &pool
            ),
            onto: chain
        )
    }

    /// Deletes `key`.
    ///
    /// - Returns: Whether it was there. A key that who writes may not read stays, as if it
    ///   were not.
    /// - Throws: ``StateError/Code/tooBig``, for a transaction over its limit, ``StateError/Code/readOnly`` while the store is
    ///   reopened, or ``StateError/Code/noPermission``.
    /// - Complexity: O(*n*) in the bytes of the key.
    @discardableResult
    package func delete(_ key: Bytes, _ receipt: inout Receipt) throws(StateError) -> Bool {
        let rule = rules?.rule(for: key)
        if let openSubject, let rule, rule.limitsWriting || rule.limitsReading,
            try checkDeleting(key, table.head(key), rule, openSubject, &receipt)
        {
            return false
        }
        guard let current = read(key, &receipt), let chain = table.chain(key) else { return false }
        try checkRoom(key.count, isVolatile: current.isVolatile)
        if current.isVolatile { try checkMove(of: key, current) }
        if let rule {
            try rule.checkDelete(key)
            try checkRate(rule, key)
        }
        if let editable { try editable.validate(key) }
        if let files { try checkFile(of: key, in: files, isDelete: true) }
        var fields = fields(of: current, version: 0)
        fields.isVolatile = current.isVolatile
        openDurability = max(openDurability, rule?.durability ?? .synced)
        put(Record.make(fields, key: key, value: nil, in: &pool), onto: chain)
        return true
    }

    /// Checks a condition of a key as who writes sees it.
    ///
    /// - Throws: ``StateError/Code/conflict``, naming the current revision; ``StateError/Code/noPermission``, where who writes may
    ///   not read the key.
    package func check(
        _ condition: Condition,
        of key: Bytes,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let current = try look(at: key, for: openSubject, &receipt)
        let holds =
            switch condition {
            case .isAbsent: current == nil
            case .isPresent: current != nil
            case .revision(let expected): (current?.revision ?? 0) == expected
            case .value(let expected): current?.value.map { $0.isEqual(to: expected) } ?? false
            }
        guard !holds else { return }
        let state = current.map { "is at revision \($0.revision)" } ?? "is absent (revision 0)"
        throw StateError(.conflict, "key \(StateError.quoted(key)) \(state)")
    }

    /// Ends the transaction: its changes are visible at once and durable later.
    ///
    /// - Parameters:
    ///   - receipt: Of the answer that reports the transaction.
    ///   - wait: What that answer waits for.
    ///   - goesAtOnce: Whether it need not wait if nothing undoes the transaction; false for a client whose own watches
    ///     are to be sent first.
    /// - Returns: Its revision; 0 where it changed nothing.
    @discardableResult
    package func finish(
        _ receipt: inout Receipt,
        waitingFor wait: Receipt.Wait = .storage,
        goesAtOnce: Bool = false
    ) -> Int64 {
        guard let cause = openCause else { preconditionFailure("no transaction is open") }
        defer { closeTransaction() }
        if openChanges.contains(nil) {
            openChanges.removeAll { $0 == nil }
            for (index, record) in openChanges.enumerated() { record?.ordinal = Int32(index) }
        }
        guard !openChanges.isEmpty || !openNotes.isEmpty else { return 0 }
        newestRevision = openRevision
        provisionalRevision = openRevision
        let ruled: Durability =
            isPersistent && !openChanges.isEmpty && openNotes.isEmpty ? openDurability : .synced
        uncommittedByteCount += openByteCount
        var isFinal = false
        if keepsSomeInMemory {
            isFinal = fillWithSomeInMemory(havingRead: receipt.revision)
        } else {
            for index in openChanges.indices {
                if let change = openChanges[index] { filling.append(change) }
            }
        }
        if !openNotes.isEmpty { filling.append(openNotes) }
        filling.endTransaction(revision: openRevision, cause: cause, byteCount: openByteCount)
        if hub.globCount > 32 { notePublishingCost() }
        if isFinal {
            if !goesAtOnce { receipt.noteCommit(openRevision, isFinal: true) }
        } else if wait == .nothing || wait == .rules && ruled == .memory {
            receipt.noteReported(openRevision)
        } else {
            receipt.noteCommit(openRevision)
        }
        return openRevision
    }

    /// Ends the transaction as if it had not been.
    package func rollBack() {
        for case let record? in openChanges.reversed() { undo(record) }
        if !openNotes.isEmpty { undo(openNotes) }
        for (rate, uid) in openRates { rate.giveBack(uid) }
        closeTransaction()
    }

    /// Takes the newest version of a key back.
    func undo(_ record: Record) {
        noteScanned(record.key)
        if countsUsage { count(record, superseding: record.older, by: -1) }
        deadlines.remove(record)
        // What has expired is not tried again at once where storage refuses.
        if let older = record.older { deadlines.insert(older, notBefore: clock() + 1_000) }
        if let older = table.pop(record, durableRevision: durableRevision) { free(older) }
        free(record)
    }

    func free(_ record: Record) {
        deadlines.remove(record)
        causes.release(record.cause)
        record.deallocate(into: &pool)
    }

    private func closeTransaction() {
        openRevision = 0
        if !openRates.isEmpty { openRates.removeAll() }
        openSubject = nil
        openCause = nil
        openByteCount = 0
        if !openNotes.isEmpty { openNotes = [] }
        openChanges.removeAll(keepingCapacity: openChanges.capacity <= 4_096)
    }

    /// What the next version of an entry says, as the next change of the open transaction.
    func fields(of current: Record?, version: Int64) -> Record.Fields {
        guard let cause = openCause else { preconditionFailure("no transaction is open") }
        let (number, uid) = cause._withUnsafeGuaranteedRef { cause in
            causes.retain(cause)
            return (cause.number, cause.cause.uid)
        }
        return Record.Fields(
            revision: openRevision,
            created: current?.created ?? openRevision,
            version: version,
            time: openTime,
            ordinal: Int32(openChanges.count),
            owner: current?.owner ?? openOwner ?? uid,
            cause: number
        )
    }

    /// What a rule says of a version beside its value.
    @inline(__always)
    private func take(_ rule: KeyRule?, _ fields: inout Record.Fields) {
        guard let rule else {
            openDurability = .synced
            return
        }
        openDurability = max(openDurability, rule.durability)
        if let lifetime = rule.lifetimeMilliseconds { fields.expires = openTime + lifetime }
    }

    /// One change per key and commit: a second one of this transaction takes the place of the first.
    func put(_ record: Record, onto chain: UnsafeMutablePointer<RadixReference>?) {
        openByteCount += record.byteCount
        putByteCount &+= Int64(record.byteCount)
        noteScanned(record.key)
        if record.hasDeadline { deadlines.insert(record, at: clock(), wallTime: openTime) }
        if let head = chain?.pointee.leaf { deadlines.remove(head) }
        if countsUsage { count(record, superseding: chain?.pointee.leaf, by: 1) }
        guard let chain, let head = chain.pointee.leaf else {
            table.begin(record)
            openChanges.append(record)
            return
        }
        chain.pointee = RadixReference(record)
        guard head.revision == openRevision else {
            record.older = head
            openChanges.append(record)
            return
        }
        record.older = head.older
        record.ordinal = head.ordinal
        openByteCount -= head.byteCount
        free(head)
        // Created and deleted by one transaction: nothing happened.
        if record.isDeleted, record.older?.isDeleted ?? true {
            openChanges[Int(record.ordinal)] = nil
            openByteCount -= record.byteCount
            undo(record)
        } else {
            openChanges[Int(record.ordinal)] = record
        }
    }

    func checkRoom(_ byteCount: Int, isVolatile: Bool = false) throws(StateError) {
        if let closure { throw closure }
        if let refusal, !isVolatile { throw refusal }
        if openRevision > revisionCeiling { throw ceilingReached() }
        if openByteCount + byteCount > limits.transactionByteCount {
            throw StateError(
                .tooBig,
                "a transaction of more than \(limits.transactionByteCount) bytes of keys and values"
            )
        }
        if openChanges.count >= limits.transactionChangeCount {
            throw StateError(
                .tooBig,
                "a transaction of more than \(limits.transactionChangeCount) changes"
            )
        }
    }

    /// While the store is reopened, a key that storage may have moved is as it is.
    func checkMove(of key: Bytes, _ head: Record?) throws(StateError) {
        guard let refusal, isMoveInDoubt(of: key, head) else { return }
        throw refusal
    }

    private func valueTooBig(_ byteCount: Int, _ key: Bytes) -> StateError {
        StateError(
            .tooBig,
            "the value of key \(StateError.quoted(key)) has \(byteCount) bytes; the limit is "
                + "\(limits.valueByteCount)"
        )
    }
}
