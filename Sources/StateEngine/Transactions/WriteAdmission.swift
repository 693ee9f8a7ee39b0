/// What is asked of each write, and what was refused.
///
/// The checks themselves are below, in order, as one function each for sets and deletes: what they look at is spread over the keyspace.
@usableFromInline
package struct WriteAdmission: ~Copyable {
    /// What the configuration says of keys; see ``KeyspaceCore/install(rules:cause:at:)``.
    @usableFromInline package internal(set) var rules: KeyRules?
    /// May be exchanged between two transactions: the next one keeps to them.
    package var limits: Limits
    /// Why writes are refused for now.
    package var refusals = WriteRefusals()
    /// Whether some rule limits how many keys or bytes there are.
    var countsUsage = false
    /// The backing if others may change what it holds; set before anything is written.
    var editable: (any EditableBacking)?
    /// The directories of the keys that live in files, if some do; set before anything is written.
    @usableFromInline package internal(set) var files: FileContainers?

    /// The soft limits that were exceeded, for the log.
    package var notices: [String] = []
    /// The last refusal by a rule, until the log has taken it.
    package var lastDenial: AccessDenial?

    init(_ limits: Limits) { self.limits = limits }
}

extension KeyspaceCore {
    /// A set that may be made.
    struct AdmittedSet {
        let rule: KeyRule?
        let chain: UnsafeMutablePointer<RadixReference>?
        /// The newest version of the key, a delete or expired perhaps.
        let head: Record?
        /// The version that the new one follows; nil if the key is absent or has expired.
        let current: Record?
        let isVolatile: Bool
    }

    /// A delete that may be made.
    struct AdmittedDelete {
        let rule: KeyRule?
        let chain: UnsafeMutablePointer<RadixReference>
        let current: Record
    }

    // MARK: The checks, in order

    /// Asks everything that is asked of a set.
    ///
    /// Order matters, for it says who learns what: access first; then what depends on the write and this key alone; then what tells of
    /// other keys, so that only who could set the key is told; last, that the name of a key that the writer may not see is taken.
    ///
    /// - Throws: as ``set(_:to:appending:isConditional:)``.
    @inline(__always)
    func admitSet(
        _ key: Bytes,
        _ value: Bytes,
        _ suffix: Bytes?,
        isConditional: Bool
    ) throws(StateError) -> AdmittedSet {
        let rule = rules?.rule(for: key)
        let chain = entries.live.slot(for: key)
        let head = chain?.pointee.leaf
        let byteCount = value.count + (suffix?.count ?? 0)
        let isVolatile = isInMemory(key, rule)
        var hidden: HiddenKey?

        if let subject = transaction.subject, let rule {
            hidden = try checkWriting(key, head, rule, subject, isConditional: isConditional)
        }
        try checkSize(byteCount, of: key)
        try checkRoom(key.count + byteCount, isVolatile: isVolatile)
        if !isVolatile, let error = admission.refusals.diskShortage { throw error }
        let last = head.flatMap { $0.isDeleted ? nil : $0 }
        try checkMemory(for: byteCount, superseding: last)
        let current = last.flatMap { isDue($0) ? nil : $0 }
        if let rule {
            let isHidden = hidden != nil
            try rule.values.checkSet(
                key,
                to: value,
                appending: suffix,
                isPresent: !isHidden && current != nil
            )
            try checkRate(rule, key)
            try checkQuota(rule, key, byteCount, superseding: isHidden ? nil : last)
        }
        if let editable = admission.editable { try checkPlace(of: key, in: editable) }
        if let files = admission.files { try checkFile(of: key, in: files) }
        if let hidden, let rule, let subject = transaction.subject {
            try checkTaken(hidden, key, rule, subject)
        }
        return AdmittedSet(
            rule: rule,
            chain: chain,
            head: head,
            current: current,
            isVolatile: isVolatile
        )
    }

    /// Asks everything that is asked of a delete, in the same order.
    ///
    /// - Returns: Nil if there is nothing to delete that the writer may see.
    /// - Throws: as ``delete(_:_:)``.
    @inline(__always)
    func admitDelete(
        _ key: Bytes,
        _ receipt: inout Receipt
    ) throws(StateError) -> AdmittedDelete? {
        let rule = rules?.rule(for: key)
        if let subject = transaction.subject, let rule,
            try isHiddenFromDelete(key, entries.head(key), rule, subject, &receipt)
        {
            return nil
        }
        guard let current = read(key, &receipt), let chain = entries.live.slot(for: key) else {
            return nil
        }
        try checkRoom(key.count, isVolatile: current.isVolatile)
        if let rule {
            try rule.values.checkDelete(key)
            try checkRate(rule, key)
        }
        if let editable = admission.editable { try editable.validate(key) }
        if let files = admission.files { try checkFile(of: key, in: files, isDelete: true) }
        return AdmittedDelete(rule: rule, chain: chain, current: current)
    }

    // MARK: What depends on no rule

    @inline(__always)
    private func checkSize(_ byteCount: Int, of key: Bytes) throws(StateError) {
        if byteCount > admission.limits.valueByteCount { throw valueTooBig(byteCount, key) }
    }

    private func valueTooBig(_ byteCount: Int, _ key: Bytes) -> StateError {
        StateError(
            .tooBig,
            "the value of key \(StateError.quoted(key)) has \(byteCount) bytes; the limit is "
                + "\(admission.limits.valueByteCount)"
        )
    }

    /// Refuses a change while nothing is written, and one for which the transaction has no room.
    func checkRoom(_ byteCount: Int, isVolatile: Bool = false) throws(StateError) {
        try admission.refusals.check(isVolatile: isVolatile)
        try revisions.checkReserved(transaction.revision)
        try transaction.checkRoom(
            for: byteCount,
            admission.limits.transactionByteCount,
            admission.limits.transactionChangeCount
        )
    }

    /// Refuses a value that takes more memory than the one before if there is none.
    @inline(__always)
    private func checkMemory(
        for byteCount: Int,
        superseding last: Record?
    ) throws(StateError) {
        guard let error = admission.refusals.memoryShortage else { return }
        if byteCount > last?.value?.count ?? -1 { throw error }
    }
}

/// Why writes are refused for now, whatever they are about.
package struct WriteRefusals: ~Copyable {
    /// The keyspace is closed: nothing is written any more.
    var closure: StateError?
    /// The store is opened again after a commit whose outcome is unknown: no stored key is written.
    package internal(set) var reopening: StateError?
    /// The disk is full: no stored key is set, though keys are deleted.
    package internal(set) var diskShortage: StateError?
    /// The process may have no more memory: no value is set that takes more of it.
    package var memoryShortage: StateError?

    /// - Throws: ``StateError/Code/readOnly`` for any change of a key; those in memory do not wait for the store.
    @inline(__always)
    func check(isVolatile: Bool) throws(StateError) {
        if let closure { throw closure }
        if let reopening, !isVolatile { throw reopening }
    }
}
