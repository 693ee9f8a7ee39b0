extension KeyspaceCore {
    /// Opens a transaction, which must be finished or rolled back before the lock is released.
    ///
    /// - Parameters:
    ///   - cause: Who writes; retained until the transaction has ended.
    ///   - time: Wall time in milliseconds since 1970.
    ///   - subject: Who needs permission; nil if everything is allowed.
    ///   - holders: The holders of its keys with a lifetime, retained in the same way; nil if no
    ///     client writes.
    package func begin(
        _ cause: InternedCause,
        at time: Int64,
        by subject: Subject? = nil,
        _ holders: (any WritersHolders)? = nil
    ) {
        transaction.begin(revisions.next, at: time, by: cause, subject, holders)
    }

    /// Sets `key` to `value`, followed by `suffix` if there is one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The bytes.
    ///   - suffix: Bytes to append.
    ///   - isConditional: Whether the write depends on the former value: then the writer must be
    ///     allowed to read it.
    ///   - expiry: When the value expires.
    ///   - isRenewal: Whether only the deadline changes.
    ///   - operation: How the value changes, for keyspace notifications.
    /// - Throws: ``StateError/Code/tooBig`` for a value or transaction over its limit, the refusals
    ///   of the ``KeyRules``, ``StateError/Code/readOnly`` while the store is reopened or revisions
    ///   are not reserved, ``StateError/Code/noSpace`` if the disk is full or there is no memory
    ///   for the value, or the refusals of an ``EditableBacking``; the transaction stays open and
    ///   unchanged.
    /// - Complexity: O(*n*) in the bytes of key and value.
    package func set(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes? = nil,
        isConditional: Bool = false,
        expiry: Expiry = .ruled,
        isRenewal: Bool = false,
        operation: ChangeOperation = .plain
    )
        throws(StateError)
    {
        let write = try admitSet(key, value, suffix, expiry, isConditional: isConditional)
        var fields = fields(of: write.current, version: (write.current?.version ?? 0) + 1)
        if let owner = ownerKept(by: write.head) { fields.owner = owner }
        fields.isVolatile = write.isVolatile
        fields.expires = write.expires
        fields.isRenewal = isRenewal && !isSetHere(write.head)
        fields.operation = operation
        take(write.rule, &fields, key)
        put(
            Record.make(
                fields,
                key: key,
                value: value,
                appending: suffix,
                in: &entries.pool
            ),
            onto: write.chain,
            due: write.expires.map { deadline(of: write, expiry, expires: $0) }
        )
    }

    /// When a version is due, in milliseconds of CLOCK_BOOTTIME.
    private func deadline(of write: AdmittedSet, _ expiry: Expiry, expires: Int64) -> Int64 {
        switch expiry {
        case .kept:
            // As before, although the wall clock was set meanwhile.
            if let deadline = write.current?.knownDeadline { return deadline }
        case .at(let time): if let deadline = entries.deadline(at: time) { return deadline }
        default: break
        }
        let now = write.clock ?? entries.clock()
        return Deadlines.deadline(of: expires, at: now, wallTime: transaction.presentTime)
    }

    /// Whether the open transaction has set the value of a version.
    private func isSetHere(_ head: Record?) -> Bool {
        head.map { $0.revision == transaction.revision && !$0.isRenewal } ?? true
    }

    /// Deletes `key`.
    ///
    /// - Returns: Whether it existed. A key that the writer may not read stays, and counts as
    ///   absent.
    /// - Throws: ``StateError/Code/tooBig`` for a transaction over its limit,
    ///   ``StateError/Code/readOnly`` while the store is reopened, or
    ///   ``StateError/Code/noPermission``.
    /// - Complexity: O(*n*) in the bytes of the key.
    @discardableResult
    package func delete(
        _ key: Bytes,
        _ receipt: inout Receipt,
        operation: ChangeOperation = .plain
    ) throws(StateError) -> Bool {
        guard let write = try admitDelete(key, &receipt) else { return false }
        var fields = fields(of: write.current, version: 0)
        fields.isVolatile = write.current.isVolatile
        fields.operation = operation
        transaction.durability = max(transaction.durability, write.rule?.durability ?? .synced)
        fields.isDeferrable =
            transaction.isDecided ? isDeferrable(decided: key) : isDeferrable(key, write.rule)
        put(Record.make(fields, key: key, value: nil, in: &entries.pool), onto: write.chain)
        return true
    }

    /// Checks a condition of a key as the writer sees it.
    ///
    /// - Throws: ``StateError/Code/conflict``, naming the current revision;
    ///   ``StateError/Code/noPermission`` if the writer may not read the key.
    package func check(
        _ condition: Condition,
        of key: Bytes,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let current = try look(at: key, for: transaction.subject, &receipt)
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
    ///   - receipt: The receipt of the answer that reports the transaction.
    ///   - wait: What that answer waits for.
    ///   - goesAtOnce: Whether it need not wait if nothing undoes the transaction; false for a
    ///     client whose own watches must be sent first.
    /// - Returns: Its revision; 0 if it changed nothing.
    @discardableResult
    package func finish(
        _ receipt: inout Receipt,
        waitingFor wait: Receipt.Wait = .storage,
        goesAtOnce: Bool = false
    ) -> Int64 {
        guard let cause = transaction.cause else { preconditionFailure("no transaction is open") }
        defer { transaction.end() }
        guard transaction.seal() else { return 0 }
        revisions.take(transaction.revision)
        let ruled: Durability =
            isPersistent && !transaction.changes.isEmpty && transaction.metadata.isEmpty
            ? transaction.durability : .synced
        pending.byteCount += transaction.byteCount
        pending.fileSteps += transaction.files.steps
        var isFinal = false
        let filling = pending.filling
        let (first, deferrable) = (filling.changes.count, filling.contents.deferrableCount)
        if memoryKeys.publishEarly {
            isFinal = fillWithSomePublished(havingRead: receipt.revision)
        } else {
            for index in transaction.changes.indices {
                if let change = transaction.changes[index] {
                    filling.append(change, entries.causes)
                }
            }
        }
        if transaction.isDecided { filling.noteCauses(from: first, entries) }
        if !transaction.metadata.isEmpty { finishMetadata(isPublished: isFinal) }
        filling.contents.fileSteps += transaction.files.steps
        filling.endTransaction(
            revision: transaction.revision,
            cause: cause,
            byteCount: transaction.byteCount
        )
        if isFinal {
            if !goesAtOnce { receipt.noteCommit(transaction.revision, isFinal: true) }
            if filling.contents.deferrableCount > deferrable {
                receipt.notePublished(transaction.revision)
            }
        } else if wait == .nothing || wait == .rules && ruled == .memory {
            receipt.noteReported(transaction.revision)
        } else {
            receipt.noteCommit(transaction.revision)
        }
        return transaction.revision
    }

    /// Runs `body` with the daemon's own permissions, in the open transaction.
    package func asDaemon<R>(_ body: () throws(StateError) -> R) throws(StateError) -> R {
        let subject = transaction.subject
        transaction.subject = nil
        defer { transaction.subject = subject }
        return try body()
    }

    /// The fields of an entry's next version, as the next change of the open transaction.
    func fields(of current: Record?, version: Int64) -> Record.Fields {
        guard let cause = transaction.cause else { preconditionFailure("no transaction is open") }
        let (number, uid) = cause._withUnsafeGuaranteedRef { cause in
            entries.causes.retain(cause)
            return (cause.number, cause.cause.uid)
        }
        var fields = Record.Fields(
            revision: transaction.revision,
            created: current?.created ?? transaction.revision,
            version: version,
            time: transaction.time,
            ordinal: Int32(transaction.changes.count),
            owner: current?.owner ?? transaction.nextOwner ?? uid,
            cause: number
        )
        fields.mayBeRecounted = transaction.isDecided && current == nil
        return fields
    }

    /// The owner that stays if one transaction deletes an entry and sets it again; nil if the new
    /// entry gets a new owner.
    ///
    /// If rules restrict access, an entry changes its owner only over a commit in which it is
    /// absent, so that watchers who lose sight of it receive its deletion.
    func ownerKept(by head: Record?) -> UInt32? {
        guard let head, rules?.limitsAccess ?? false else { return nil }
        // It has expired, but nobody has been notified of that yet.
        if !head.isDeleted { return head.owner }
        guard head.revision == transaction.revision, transaction.revision > 0,
            let older = head.older,
            !older.isDeleted
        else { return nil }
        return older.owner
    }

    /// Applies the options of a rule to a version.
    @inline(__always)
    private func take(_ rule: KeyRule?, _ fields: inout Record.Fields, _ key: Bytes) {
        guard let rule else {
            transaction.durability = .synced
            if transaction.isDecided { fields.isDeferrable = isDeferrable(decided: key) }
            return
        }
        transaction.durability = max(transaction.durability, rule.durability)
        if rule.delay != nil { fields.isDeferrable = isDeferrable(key, rule) }
    }

    /// One change per key and commit: a second change of a key replaces the first.
    ///
    /// A version that ends by itself is `due` then, in milliseconds of CLOCK_BOOTTIME.
    func put(
        _ record: Record,
        onto chain: UnsafeMutablePointer<RadixReference>?,
        due deadline: Int64? = nil
    ) {
        precondition(record.hasDeadline == (deadline != nil), "a version is due or not")
        transaction.byteCount += record.byteCount
        entries.putByteCount &+= Int64(record.byteCount)
        entries.noteChanged(record)
        if let deadline {
            entries.deadlines.insert(record, replacing: chain?.pointee.leaf, due: deadline)
        } else if let head = chain?.pointee.leaf {
            entries.removeDeadline(of: head)
        }
        if admission.countsUsage { count(record, superseding: chain?.pointee.leaf, by: 1) }
        guard let chain, let head = chain.pointee.leaf else {
            entries.begin(record)
            transaction.changes.append(record)
            return
        }
        chain.pointee = RadixReference(record)
        guard head.revision == transaction.revision else {
            record.older = head
            transaction.changes.append(record)
            return
        }
        record.older = head.older
        record.ordinal = head.ordinal
        transaction.byteCount -= head.byteCount
        entries.free(head)
        // The transaction created and deleted it: there is no change.
        if record.isDeleted, record.older?.isDeleted ?? true {
            transaction.changes[Int(record.ordinal)] = nil
            transaction.byteCount -= record.byteCount
            undo(record)
        } else {
            transaction.changes[Int(record.ordinal)] = record
        }
    }
}
