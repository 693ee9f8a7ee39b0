/// Who may write: the checks of access in ``KeyspaceCore/admitSet(_:_:_:isConditional:)`` and
/// ``KeyspaceCore/admitDelete(_:_:)``.
extension KeyspaceCore {
    /// Refuses to set a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - head: Its newest version.
    ///   - rule: Its rule.
    ///   - subject: Who writes.
    ///   - isConditional: Whether the write depends on the former value.
    /// - Returns: How to treat a hidden key; nil if it is not hidden.
    /// - Throws: as ``require(_:ofSeen:for:)``; a hidden key is refused like an absent one.
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

    /// Refuses to set a hidden key if there was no other refusal: its name is taken.
    ///
    /// - Throws: as ``require(_:ofSeen:for:)``; ``StateError/Code/rejected`` if a rule allows it to
    ///   be set only once.
    func checkTaken(
        _ hidden: HiddenKey,
        _ key: Bytes,
        _ rule: KeyRule,
        _ subject: Subject
    ) throws(StateError) {
        if let denial = hidden.taken { throw refuse(denial, key, subject) }
        try rule.values.checkOverwriting(key)
    }

    /// Refuses to delete a key: a hidden one like an absent one.
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
        // Its reply reveals whether it existed.
        if let denial = rule.access.denial(.write, subject, target)
            ?? rule.access.denial(.read, subject, target)
        {
            throw refuse(denial, key, subject)
        }
        guard let head, case .absent = target else { return false }
        noteHidden(head, rule, subject, &receipt)
        return owner(of: head) != nil
    }

    /// The owner of an entry; also of one that the open transaction has deleted.
    func owner(of head: Record?) -> UInt32? {
        guard let head else { return nil }
        if !head.isDeleted { return head.owner }
        return ownerKept(by: head)
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
}

/// A key that is being set exists, and is hidden from the writer.
struct HiddenKey {
    /// Why it cannot be set although an absent key could; nil if it may be overwritten.
    var taken: AccessDenial?
}
