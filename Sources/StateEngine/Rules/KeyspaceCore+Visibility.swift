/// What a subject may be told of a keyspace.
///
/// Every check is of a subject that the rules may keep out (``restriction(of:)``); nil stands for whom they do not.
extension KeyspaceCore {
    /// The subject itself where the rules may keep it out of something; nil where everything is allowed.
    package func restriction(of subject: Subject) -> Subject? {
        guard !subject.isPrivileged, let rules, rules.limitsAccess else { return nil }
        return subject
    }

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

    /// What a subject may be told; nil is told everything.
    package func visibility(of subject: Subject?) -> Visibility {
        guard let subject, let subject = restriction(of: subject), let rules else {
            return .everything
        }
        return Visibility(subject, rules)
    }

    /// Who may be told of what has a name as keys have; nil: everybody.
    package func audience(of key: Bytes, _ target: AccessTarget) -> Audience? {
        guard let rules, rules.limitsAccess, let rule = rules.rule(for: key),
            rule.access.limitsSight
        else { return nil }
        return Audience(rule, target)
    }

    /// The newest version of `key` as `subject` sees it; nil where it is absent or hidden, and for nil as ``read(_:)``.
    ///
    /// Of a hidden version nothing counts as observed, so that no reply waits for it.
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

    /// The same, where `subject` may be told that a key is absent.
    ///
    /// - Throws: ``StateError/Code/noPermission``, naming the key and the rule, where it may not, whether or not it is.
    package func look(
        at key: Bytes,
        for subject: Subject?,
        _ receipt: inout Receipt
    ) throws(StateError) -> Record? {
        guard let subject, let rule = rules?.rule(for: key), rule.access.limitsReading else {
            return read(key, &receipt)
        }
        // Where nothing depends on owners, nobody sees some keys of a rule and not the others.
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

    /// Refuses what `subject` may not do to a key as it sees it: to a hidden one what it may not do to an absent one.
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
            // What is done to a key tells whether it is there.
            ?? rule.access.denial(.read, subject, target)
        if let denial { throw refuse(denial, key, subject) }
    }

    /// What an access list is asked of where a hidden key is to look like an absent one.
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

    /// A key was looked at that is hidden now; where it was not, that is observed.
    func noteHidden(
        _ head: Record,
        _ rule: KeyRule,
        _ subject: Subject,
        _ receipt: inout Receipt
    ) {
        guard head.revision > revisions.durable, head.revision != transaction.revision,
            !head.isTold,
            let durable = head.version(at: revisions.durable), !durable.isDeleted,
            rule.access.allows(.read, subject, .entry(owner: durable.owner))
        else { return }
        receipt.noteRead(head.revision)
    }
}
