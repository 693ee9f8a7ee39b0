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

    /// The same for one of the keys that patterns mean: one that `subject` may not read is not named.
    ///
    /// - Throws: as ``require(_:of:for:)``; a key that may not be read is told as one of the patterns'.
    package func require(
        _ action: KeyAction,
        of key: Bytes,
        for subject: Subject,
        of patterns: PatternSet
    ) throws(StateError) {
        do throws(StateError) {
            try require(action, of: key, for: subject)
        } catch {
            guard let denial = lastDenial, let rule = rules?.rule(for: key),
                !rule.allows(.read, subject, target(of: key, rule))
            else { throw error }
            let pattern = patterns.patterns.first { $0.matches(key) }
            let shown = pattern?.bytes.withUnsafeBytes { StateError.quoted($0) } ?? ""
            throw denial.error("a key of \(shown)", subject)
        }
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
        return owner(of: table.head(key)).map { .entry(owner: $0) } ?? .absent
    }

    private func refuse(_ denial: AccessDenial, _ key: Bytes, _ subject: Subject) -> StateError {
        lastDenial = denial
        return denial.error(key: key, subject)
    }

    // MARK: Writing

    /// Refuses to set or delete a key.
    ///
    /// - Throws: as ``require(_:of:for:)``.
    func checkWriting(
        _ key: Bytes,
        _ head: Record?,
        _ rule: KeyRule,
        _ subject: Subject,
        deletes: Bool = false
    ) throws(StateError) {
        guard rule.limitsWriting else { return }
        let denial =
            if let owner = owner(of: head) {
                rule.denial(.write, subject, .entry(owner: owner))
            } else {
                // To delete what is absent does nothing, for whoever might create it.
                rule.denial(deletes ? .write : .create, subject, .absent)
            }
        if let denial { throw refuse(denial, key, subject) }
    }

    /// Whom an entry belongs to; one that the open transaction has deleted still does.
    private func owner(of head: Record?) -> UInt32? {
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
        guard head.revision == openRevision, openRevision > 0, let older = head.older,
            !older.isDeleted
        else { return nil }
        return older.owner
    }

    /// Runs `body` as the daemon itself, in the transaction that is open.
    package func asDaemon<R>(_ body: () throws(StateError) -> R) throws(StateError) -> R {
        let subject = openSubject
        openSubject = nil
        defer { openSubject = subject }
        return try body()
    }

    // MARK: Seeing

    /// Whether `subject` is shown a version in lists; nil is shown everything.
    package func mayRead(_ record: Record, _ subject: Subject?) -> Bool {
        guard let subject else { return true }
        return mayRead(record.key, owner: record.owner, subject)
    }

    /// The same for what is no longer in memory.
    package func mayRead(_ key: Bytes, owner: UInt32, _ subject: Subject?) -> Bool {
        guard let subject, let rule = rules?.rule(for: key) else { return true }
        return rule.allows(.read, subject, .entry(owner: owner))
    }

    /// Whether `subject` is told of a version as a watcher.
    package func maySee(_ record: Record, _ subject: Subject) -> Bool {
        guard !subject.isPrivileged, let rules, rules.limitsAccess,
            let rule = rules.rule(for: record.key)
        else {
            return true
        }
        return rule.allows(.watch, subject, .entry(owner: record.owner))
    }
}

/// What one subject may see, for a thread that reads beside the keyspace.
///
/// Only one thread uses its rules: the proof of `@unchecked Sendable`.
package struct AccessView: @unchecked Sendable {
    private let rules: KeyRules
    private let subject: Subject
    private let action: KeyAction

    /// - Parameters:
    ///   - rules: A copy that no other thread uses.
    ///   - subject: Who looks.
    ///   - action: ``KeyAction/read`` or ``KeyAction/watch``.
    package init(_ rules: KeyRules, _ subject: Subject, _ action: KeyAction) {
        (self.rules, self.subject, self.action) = (rules, subject, action)
    }

    /// Whether a version of a key is shown.
    package func shows(_ key: Bytes, owner: UInt32) -> Bool {
        rules.rule(for: key)?.allows(action, subject, .entry(owner: owner)) ?? true
    }
}

extension AccessView? {
    /// The same; nil sees everything.
    package func shows(_ change: borrowing StoredChange) -> Bool {
        self?.shows(change.key, owner: change.owner) ?? true
    }
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
