/// Who may write: the checks of access in ``KeyspaceCore/admitSet(_:_:_:isConditional:)`` and
/// ``KeyspaceCore/admitDelete(_:_:)``.
extension KeyspaceCore {
    /// Refuses to set a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - head: Its newest version.
    ///   - rule: What holds for it.
    ///   - subject: Who writes.
    ///   - isConditional: Whether what is written depends on what the key was.
    /// - Returns: What holds where the key is hidden; nil where it is not.
    /// - Throws: as ``require(_:ofSeen:for:)``, for a hidden key what an absent one is refused with.
    func checkWriting(
        _ key: Bytes,
        _ head: Record?,
        _ rule: KeyRule,
        _ subject: Subject,
        isConditional: Bool
    ) throws(StateError) -> HiddenKey? {
        guard rule.access.limitsWriting || rule.access.limitsReading else { return nil }
        guard let owner = owner(of: head) else {
            if let denial = rule.access.denial(.create, subject, .absent) {
                throw refuse(denial, key, subject)
            }
            return nil
        }
        let target = AccessTarget.entry(owner: owner)
        let denial = rule.access.denial(.write, subject, target)
        guard let hiding = rule.access.denial(.read, subject, target) else {
            if let denial { throw refuse(denial, key, subject) }
            return nil
        }
        let taken = denial ?? (isConditional ? hiding : nil)
        if taken != nil, let denial = rule.access.denial(.create, subject, .absent) {
            throw refuse(denial, key, subject)
        }
        return HiddenKey(taken: taken)
    }

    /// Refuses to set a hidden key that nothing else keeps from being set: its name is taken.
    ///
    /// - Throws: as ``require(_:ofSeen:for:)``; ``StateError/Code/rejected``, if a rule lets it be set once.
    func checkTaken(
        _ hidden: HiddenKey,
        _ key: Bytes,
        _ rule: KeyRule,
        _ subject: Subject
    ) throws(StateError) {
        if let denial = hidden.taken { throw refuse(denial, key, subject) }
        try rule.values.checkOverwriting(key)
    }

    /// Refuses to delete a key: a hidden one as if it were absent.
    ///
    /// - Returns: Whether it is hidden, and stays.
    /// - Throws: as ``require(_:ofSeen:for:)``.
    func isHiddenFromDelete(
        _ key: Bytes,
        _ head: Record?,
        _ rule: KeyRule,
        _ subject: Subject,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool {
        guard rule.access.limitsWriting || rule.access.limitsReading else { return false }
        let target = seen(key, head, rule, subject)
        // Its reply tells whether it was there.
        if let denial = rule.access.denial(.write, subject, target)
            ?? rule.access.denial(.read, subject, target)
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
}

/// That a key which is set is there, and hidden from who sets it.
struct HiddenKey {
    /// Why it is not set where an absent one would be; nil where it may be overwritten.
    var taken: AccessDenial?
}
