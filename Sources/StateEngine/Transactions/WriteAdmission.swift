/// The conditions for each write, and its refusals.
///
/// The checks themselves are below, in order, one function each for sets and deletes: what they
/// read is spread over the keyspace.
@usableFromInline
package struct WriteAdmission: ~Copyable {
    /// The configured rules; see ``KeyspaceCore/install(rules:cause:at:)``.
    @usableFromInline package internal(set) var rules: KeyRules?
    /// May be replaced between two transactions; the next one uses the new limits.
    package var limits: Limits
    /// Why writes are refused now.
    package var refusals = WriteRefusals()
    /// Whether some rule limits the number or the bytes of keys.
    var countsUsage = false
    /// The backing if others may change its contents; set before anything is written.
    var editable: (any EditableBacking)?
    /// The directories of the keys that live in files; nil if none do.
    ///
    /// Set before anything is written.
    @usableFromInline package internal(set) var files: FileContainers?

    /// The keys that a cluster has; nil if there are none.
    ///
    /// Set before anything is written.
    package internal(set) var mirrored: MirroredPrefix?
    /// Whether the cluster can be asked for a change of its keys; nil: nobody asks it.
    package weak var clusterLink: (any ClusterLink)?

    /// The soft limits that were exceeded, for the log.
    package var notices: [String] = []
    /// The last refusal by a rule, until the log has taken it.
    package var lastDenial: AccessDenial?

    init(_ limits: Limits) { self.limits = limits }
}

extension KeyspaceCore {
    /// A set that is allowed.
    struct AdmittedSet {
        let rule: KeyRule?
        let chain: UnsafeMutablePointer<RadixReference>?
        /// The newest version of the key, perhaps a delete or expired.
        let head: Record?
        /// The version that the new one follows; nil if the key is absent or has expired.
        let current: Record?
        let isVolatile: Bool
        /// As ``Record/storedExpiry``.
        let expires: Int64?
        /// Milliseconds of CLOCK_BOOTTIME, if the checks have read that clock.
        let clock: Int64?
    }

    /// A delete that is allowed.
    struct AdmittedDelete {
        let rule: KeyRule?
        let chain: UnsafeMutablePointer<RadixReference>
        let current: Record
    }

    // MARK: The checks, in order

    /// Makes all checks of a set.
    ///
    /// Order matters, because errors reveal information. First comes access; then what depends on
    /// the write and this key alone; then what reveals other keys, so that only somebody who could
    /// set the key learns it; last, that the name of a hidden key is taken.
    ///
    /// - Throws: as ``set(_:to:appending:isConditional:)``.
    @inline(__always)
    func admitSet(
        _ key: Bytes,
        _ value: Bytes,
        _ suffix: Bytes?,
        _ expiry: Expiry,
        isConditional: Bool
    ) throws(StateError) -> AdmittedSet {
        let rule = transaction.isDecided ? nil : rules?.rule(for: key)
        let chain = entries.live.slot(for: key)
        let head = chain?.pointee.leaf
        let byteCount = value.count + (suffix?.count ?? 0)
        let isVolatile = isInMemory(key, rule)
        var hidden: HiddenKey?

        if let subject = transaction.subject, let rule {
            hidden = try checkWriting(key, head, rule, subject, isConditional: isConditional)
        }
        if transaction.cluster != nil { try noteChange(of: key, expiry, rule, head) }
        try checkSize(byteCount, of: key)
        try checkRoom(key.count + byteCount, isVolatile: isVolatile)
        if !isVolatile, admission.refusals.diskShortage != nil { throw admission.refusals.refuse() }
        let last = head.flatMap { $0.isDeleted ? nil : $0 }
        try checkMemory(for: byteCount, superseding: last)
        let clock = last.flatMap { $0.hasDeadline ? entries.clock() : nil }
        let current = last.flatMap { $0.isDue(at: clock) ? nil : $0 }
        let expires = try expires(expiry, of: key, after: current, rule)
        if let rule {
            let isHidden = hidden != nil
            try rule.values.checkSet(
                key,
                to: value,
                appending: suffix,
                isPresent: !isHidden && current != nil
            )
            if let limit = rule.lifetimeLimit {
                try checkLifetime(limit, key, expiry, expires)
            }
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
            isVolatile: isVolatile,
            expires: expires,
            clock: clock
        )
    }

    /// Makes all checks of a delete, in the same order.
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
        if transaction.cluster != nil, try !mayDelete(key) { return nil }
        guard let current = read(key, &receipt), let chain = entries.live.slot(for: key) else {
            return nil
        }
        try checkRoom(key.count, isVolatile: current.isVolatile)
        if let rule, !transaction.isDecided {
            try rule.values.checkDelete(key)
            try checkRate(rule, key)
        }
        if let editable = admission.editable { try editable.validate(key) }
        if let files = admission.files { try checkFile(of: key, in: files, isDelete: true) }
        return AdmittedDelete(
            rule: transaction.isDecided ? nil : rule,
            chain: chain,
            current: current
        )
    }

    /// When a new value ends by itself, as ``Record/storedExpiry``.
    @inline(__always)
    private func expires(
        _ expiry: Expiry,
        of key: Bytes,
        after current: Record?,
        _ rule: KeyRule?
    ) throws(StateError) -> Int64? {
        switch expiry {
        case .kept where current != nil: return current?.storedExpiry
        case .ruled, .kept:
            guard let rule else { return nil }
            if let lifetime = rule.lifetime {
                return try holder(ruledBy: lifetime, of: key, current)
            }
            return rule.lifetimeMilliseconds.map { transaction.time + $0 }
        case .never: return nil
        case .after, .at: return expiry.time(from: transaction.presentTime)
        case .with(let lifetime): return try holder(lifetime, of: key, current).stored
        }
    }

    // MARK: What depends on no rule

    @inline(__always)
    func checkSize(_ byteCount: Int, of key: Bytes) throws(StateError) {
        if byteCount > admission.limits.valueByteCount { throw valueTooBig(byteCount, key) }
    }

    private func valueTooBig(_ byteCount: Int, _ key: Bytes) -> StateError {
        StateError(
            .tooBig,
            "the value of key \(StateError.quoted(key)) has \(byteCount) bytes; the limit is "
                + "\(admission.limits.valueByteCount)"
        )
    }

    /// Refuses a change while writes are refused, and a change that exceeds the transaction.
    func checkRoom(_ byteCount: Int, isVolatile: Bool = false) throws(StateError) {
        try admission.refusals.check(isVolatile: isVolatile)
        try revisions.checkReserved(transaction.revision)
        try transaction.checkRoom(
            for: byteCount,
            admission.limits.transactionByteCount,
            min(admission.limits.transactionChangeCount, Record.changeLimit)
        )
    }

    /// If memory is short, refuses a value that takes more than the one before.
    @inline(__always)
    func checkMemory(
        for byteCount: Int,
        superseding last: Record?
    ) throws(StateError) {
        guard let error = admission.refusals.memoryShortage else { return }
        if byteCount > last?.value?.count ?? -1 { throw error }
    }

    /// Whether a key is in memory only, in a persistent store; `rule` are its current options.
    @inline(__always)
    package func isInMemory(_ key: Bytes, _ rule: KeyRule?) -> Bool {
        guard memoryKeys.areUsed else { return false }
        let location = memoryKeys.areInstalled ? rule : memoryKeys.locations?.rule(for: key)
        return location?.isInMemory ?? false
    }

    /// Whether storage may have changes later: not while it refuses those that it was to have.
    ///
    /// Nobody else may change it meanwhile.
    private var mayDefer: Bool {
        isPersistent && admission.editable == nil && !admission.refusals.cannotDefer
    }

    /// Whether storage may have a change of a key later, by its rule.
    ///
    /// Not if its value is in a file, whatever a rule says since the start: the file is written with
    /// the commit.
    @inline(__always)
    package func isDeferrable(_ key: Bytes, _ rule: KeyRule?) -> Bool {
        guard let rule, rule.delay != nil else { return false }
        let isInFile = admission.files?.holds(key) ?? false
        return mayDefer && !isInFile && !isInMemory(key, rule)
    }
}

/// Why all writes are refused now.
package struct WriteRefusals: ~Copyable {
    /// The keyspace is closed: nothing can be written any more.
    var closure: StateError?
    /// The store is being reopened after a commit whose outcome is unknown: no stored key can be
    /// written.
    package internal(set) var reopening: StateError?
    /// Storage refuses what it may have later: all changes wait for it.
    package internal(set) var cannotDefer = false
    /// The disk is full: no stored key can be set, but keys can be deleted.
    package private(set) var diskShortage: StateError?
    /// Since when, in milliseconds since 1970.
    package private(set) var shortSince: Int64 = 0
    /// How many changes were refused for it since then.
    package private(set) var shortRefusalCount = 0
    /// The process may not use more memory: values may not grow.
    package var memoryShortage: StateError?

    /// Whether storage or memory refuses writes now.
    package var areAny: Bool {
        closure != nil || reopening != nil || diskShortage != nil || memoryShortage != nil
    }

    /// The disk is full from now on, or has room again.
    mutating func setShortage(_ shortage: StateError?, at time: Int64) {
        if diskShortage == nil { (shortSince, shortRefusalCount) = (time, 0) }
        diskShortage = shortage
    }

    /// Counts a change that is refused because the disk is full.
    @inline(never)
    mutating func refuse() -> StateError {
        shortRefusalCount += 1
        return diskShortage ?? StateError(.noSpace, "disk full")
    }

    /// - Throws: ``StateError/Code/readOnly`` for any change of a key; keys in memory do not wait
    ///   for the store.
    @inline(__always)
    func check(isVolatile: Bool) throws(StateError) {
        if let closure { throw closure }
        if let reopening, !isVolatile { throw reopening }
    }
}
