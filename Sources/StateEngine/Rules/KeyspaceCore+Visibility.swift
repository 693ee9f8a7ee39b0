/// What a subject may see of a keyspace.
///
/// Every check takes a subject that rules can restrict (``restriction(of:)``); nil is unrestricted.
extension KeyspaceCore {
    /// Refuses a key of which `subject` may see nothing, whoever its owner is.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the key, the action and the rule.
    package func requireAny(
        _ action: KeyAction,
        of key: Bytes,
        for subject: Subject,
        _ target: AccessTarget = .any,
        called name: String = "key"
    ) throws(StateError) {
        guard let denial = rules?.rule(for: key)?.access.denial(action, subject, target) else {
            return
        }
        admission.lastDenial = denial
        throw denial.error("\(name) \(StateError.quoted(key))", subject)
    }

    func refuse(_ denial: AccessDenial, _ key: Bytes, _ subject: Subject) -> StateError {
        admission.lastDenial = denial
        return denial.error(key: key, subject)
    }

    /// What a subject may see; nil sees everything.
    package func visibility(of subject: Subject?) -> Visibility {
        guard let subject, let rules else { return .everything }
        return Visibility(restricting: subject, rules)
    }

    /// Who may see something that is named like a key.
    ///
    /// - Parameters:
    ///   - key: The name.
    ///   - action: ``KeyAction/watch`` for what a watch shows, ``KeyAction/read`` for what a read
    ///     would show as well.
    ///   - target: What it is.
    /// - Returns: Nil if it is everybody.
    package func audience(
        of key: Bytes,
        _ action: KeyAction = .watch,
        _ target: AccessTarget
    ) -> Audience? {
        guard let rules, rules.limitsAccess, let rule = rules.rule(for: key),
            action == .read ? rule.access.limitsReading : rule.access.limitsSight
        else { return nil }
        return Audience(rule, action, target)
    }

    /// The newest version of `key` as `subject` sees it; nil if it is absent or hidden.
    ///
    /// A nil subject reads like ``read(_:_:)``.
    ///
    /// A hidden version does not count as read, so that no reply waits for it.
    ///
    /// - Complexity: as ``require(_:ofSeen:for:)``.
    package func read(
        _ key: Bytes,
        for subject: Subject?,
        _ receipt: inout Receipt
    ) -> Record? {
        guard let subject, let rule = rules?.rule(for: key), rule.access.limitsReading,
            let head = entries.head(key)
        else { return read(key, &receipt) }
        guard !rule.access.allows(.read, subject, .entry(owner: head.owner)) else {
            return read(key, &receipt)
        }
        noteHidden(head, rule, subject, &receipt)
        return nil
    }

    /// The same, for replies that reveal whether a key is absent.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the key and the rule, if `subject` may
    ///   not know that, whether or not it is absent.
    package func look(
        at key: Bytes,
        for subject: Subject?,
        _ receipt: inout Receipt
    ) throws(StateError) -> Record? {
        guard let subject, let rule = rules?.rule(for: key), rule.access.limitsReading else {
            return read(key, &receipt)
        }
        // If nothing depends on owners, a subject sees all keys of a rule or none.
        let head = rule.access.asksForOwner ? entries.head(key) : nil
        if let owner = owner(of: head), rule.access.allows(.read, subject, .entry(owner: owner)) {
            return read(key, &receipt)
        }
        if let denial = rule.access.denial(.read, subject, .absent) {
            throw refuse(denial, key, subject)
        }
        guard rule.access.asksForOwner else { return read(key, &receipt) }
        if let head { noteHidden(head, rule, subject, &receipt) }
        return nil
    }

    /// Refuses what `subject` may not do to a key as it sees it: a hidden key is treated like an
    /// absent one.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the key, the action and the rule.
    /// - Complexity: O(*n*) in the bytes of the key and in the users and groups of its rule.
    package func require(
        _ action: KeyAction,
        ofSeen key: Bytes,
        for subject: Subject
    ) throws(StateError) {
        guard let rule = rules?.rule(for: key) else {
            guard action == .admin else { return }
            throw refuse(AccessDenial(action: .admin, rule: nil), key, subject)
        }
        let target = seen(key, entries.head(key), rule, subject)
        let denial =
            rule.access.denial(action, subject, target)
            // An action on a key reveals whether it exists.
            ?? rule.access.denial(.read, subject, target)
        if let denial { throw refuse(denial, key, subject) }
    }

    /// The target of an access check, in which a hidden key looks like an absent one.
    func seen(
        _ key: Bytes,
        _ head: Record?,
        _ rule: KeyRule,
        _ subject: Subject
    ) -> AccessTarget {
        guard let owner = owner(of: head) else { return .absent }
        let target = AccessTarget.entry(owner: owner)
        return rule.access.allows(.read, subject, target) ? target : .absent
    }

    /// A hidden key was read.
    ///
    /// If its durable version is not hidden, that counts as read.
    func noteHidden(
        _ head: Record,
        _ rule: KeyRule,
        _ subject: Subject,
        _ receipt: inout Receipt
    ) {
        guard head.revision > revisions.durable, head.revision != transaction.revision,
            let durable = head.version(at: revisions.durable), !durable.isDeleted,
            rule.access.allows(.read, subject, .entry(owner: durable.owner))
        else { return }
        receipt.noteRead(head)
    }
}
