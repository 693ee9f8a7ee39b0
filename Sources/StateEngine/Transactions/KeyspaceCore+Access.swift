/// Who may do what, as the rules say it.
///
/// Every check is of a subject that the rules may keep out (``restriction(of:)``); nil stands for whom they do not.
extension KeyspaceCore {
    /// The subject itself where the rules may keep it out of something; nil where everything is allowed.
    package func restriction(of subject: Subject) -> Subject? {
        guard !subject.isPrivileged, let rules, rules.limitsAccess else { return nil }
        return subject
    }

    // MARK: Literal keys

    /// Refuses what `subject` may not do to a key as it is now.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the key, the action and the rule.
    /// - Complexity: O(*n*) in the bytes of the key and in the users and groups of its rule.
    package func require(
        _ action: KeyAction,
        of key: Bytes,
        for subject: Subject
    ) throws(StateError) {
        guard let rule = rules?.rule(for: key) else {
            if action == .admin {
                throw refuse(AccessDenial(action: .admin, rule: nil), key, subject)
            }
            return
        }
        guard let denial = rule.denial(action, subject, target(of: key, rule)) else { return }
        throw refuse(denial, key, subject)
    }

    /// Refuses a key of which `subject` may see nothing, whoever its owner is.
    ///
    /// - Throws: as ``require(_:of:for:)``.
    package func requireAny(
        _ action: KeyAction,
        of key: Bytes,
        for subject: Subject,
        _ target: AccessTarget = .any,
        called name: String = "key"
    ) throws(StateError) {
        guard let denial = rules?.rule(for: key)?.denial(action, subject, target) else { return }
        lastDenial = denial
        throw denial.error("\(name) \(StateError.quoted(key))", subject)
    }

    private func target(of key: Bytes, _ rule: KeyRule) -> AccessTarget {
        guard rule.asksForOwner else { return .absent }
        return owner(of: entries.head(key)).map { .entry(owner: $0) } ?? .absent
    }

    func refuse(_ denial: AccessDenial, _ key: Bytes, _ subject: Subject) -> StateError {
        lastDenial = denial
        return denial.error(key: key, subject)
    }

    // MARK: Writing

    /// Refuses to set a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - head: Its newest version.
    ///   - rule: What holds for it.
    ///   - subject: Who writes.
    ///   - isConditional: Whether what is written depends on what the key was.
    /// - Returns: What holds where the key is hidden; nil where it is not.
    /// - Throws: as ``require(_:of:for:)``, for a hidden key what an absent one is refused with.
    func checkWriting(
        _ key: Bytes,
        _ head: Record?,
        _ rule: KeyRule,
        _ subject: Subject,
        isConditional: Bool
    ) throws(StateError) -> HiddenKey? {
        guard rule.limitsWriting || rule.limitsReading else { return nil }
        guard let owner = owner(of: head) else {
            if let denial = rule.denial(.create, subject, .absent) {
                throw refuse(denial, key, subject)
            }
            return nil
        }
        let target = AccessTarget.entry(owner: owner)
        let denial = rule.denial(.write, subject, target)
        guard let hiding = rule.denial(.read, subject, target) else {
            if let denial { throw refuse(denial, key, subject) }
            return nil
        }
        let taken = denial ?? (isConditional ? hiding : nil)
        if taken != nil, let denial = rule.denial(.create, subject, .absent) {
            throw refuse(denial, key, subject)
        }
        return HiddenKey(taken: taken)
    }

    /// Refuses to set a hidden key that nothing else keeps from being set: its name is taken.
    ///
    /// - Throws: as ``require(_:of:for:)``; ``StateError/Code/rejected``, where a rule lets it be set once.
    func check(
        _ hidden: HiddenKey,
        _ key: Bytes,
        _ rule: KeyRule,
        _ subject: Subject
    ) throws(StateError) {
        if let denial = hidden.taken { throw refuse(denial, key, subject) }
        try rule.checkOverwriting(key)
    }

    /// Refuses to delete a key: a hidden one as if it were absent.
    ///
    /// - Returns: Whether it is hidden, and stays.
    /// - Throws: as ``require(_:of:for:)``.
    func checkDeleting(
        _ key: Bytes,
        _ head: Record?,
        _ rule: KeyRule,
        _ subject: Subject,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        let target = seen(key, head, rule, subject)
        // Its reply tells whether it was there.
        if let denial = rule.denial(.write, subject, target) ?? rule.denial(.read, subject, target)
        {
            throw refuse(denial, key, subject)
        }
        guard let head, case .absent = target else { return false }
        noteHidden(head, rule, subject, &receipt)
        return owner(of: head) != nil
    }

    /// Whom an entry belongs to; one that the open transaction has deleted still does.
    func owner(of head: Record?) -> UInt32? {
        guard let head else { return nil }
        if !head.isDeleted { return head.owner }
        return ownerKept(by: head)
    }

    /// The owner that an entry keeps which one transaction deletes and sets again; nil where it is a new one.
    ///
    /// Where rules say who may see what, an entry changes hands only over a commit without it, so that who may not see it any more
    /// has been told that it is gone.
    func ownerKept(by head: Record?) -> UInt32? {
        guard let head, rules?.limitsAccess ?? false else { return nil }
        // One whose time is over, of which nobody has been told yet that it is gone.
        if !head.isDeleted { return head.owner }
        guard head.revision == transaction.revision, transaction.revision > 0,
            let older = head.older,
            !older.isDeleted
        else { return nil }
        return older.owner
    }

    /// Runs `body` as the daemon itself, in the transaction that is open.
    package func asDaemon<R>(_ body: () throws(StateError) -> R) throws(StateError) -> R {
        let subject = transaction.subject
        transaction.subject = nil
        defer { transaction.subject = subject }
        return try body()
    }
}

/// That a key which is set is there, and hidden from who sets it.
struct HiddenKey {
    /// Why it is not set where an absent one would be; nil where it may be overwritten.
    var taken: AccessDenial?
}

extension Pattern {
    /// Whether it means every key there can be, by whatever it is written.
    package var meansEverything: Bool {
        guard literal.isEmpty else { return false }
        switch kind {
        case .key: return false
        case .prefix: return true
        case .glob:
            let stars = bytes.count { $0 == UInt8(ascii: "*") }
            let marks = bytes.count { $0 == UInt8(ascii: "?") }
            return stars > 0 && marks <= 1 && stars + marks == bytes.count
        }
    }
}
