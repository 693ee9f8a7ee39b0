/// What of a key is logged, by `audit` of a rule.
package enum AuditLevel: Hashable, Sendable {
    /// Nothing.
    case nothing
    /// Each change.
    case changes
    /// Each change, and who reads the value.
    case reads
}

/// A pattern of a rule that has changes logged, and perhaps reads.
package struct AuditedPattern: Sendable {
    package let pattern: Pattern
    package let rule: RulePlace
    package let includesReads: Bool

    package init(_ pattern: Pattern, _ rule: RulePlace, includesReads: Bool) {
        (self.pattern, self.rule, self.includesReads) = (pattern, rule, includesReads)
    }
}

extension KeyspaceCore {
    /// The rule that has reads of a key logged, if a read would give its value to a subject.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - action: ``KeyAction/read``, or ``KeyAction/watch``.
    ///   - subject: Who reads; nil is unrestricted.
    ///   - mayBePast: Whether what it was before counts, so that it need not be there.
    /// - Returns: The rule; nil if there is none, or if the subject gets no value.
    @inline(never)
    package func auditOfReading(
        _ key: Bytes,
        _ action: KeyAction,
        by subject: Subject?,
        mayBePast: Bool
    ) -> RulePlace? {
        guard let rule = rules?.rule(for: key), let audit = rule.settings.audit,
            audit.value == .reads
        else { return nil }
        let head = entries.head(key).flatMap { $0.isDeleted || isDue($0) ? nil : $0 }
        let isThere = head != nil || rules?.standards[key] != nil
        guard mayBePast || isThere else { return nil }
        if let subject {
            let target: AccessTarget =
                if mayBePast { .any } else if let head { .entry(owner: head.owner) } else {
                    .absent
                }
            guard rule.access.allows(action, subject, target) else { return nil }
        }
        return audit.rule
    }

    /// The rule that has reads of some keys logged, if a read of a pattern may give the value of
    /// one to a subject.
    ///
    /// - Parameters:
    ///   - pattern: What is read.
    ///   - action: ``KeyAction/read``, or ``KeyAction/watch``.
    ///   - subject: Who reads; nil is unrestricted.
    /// - Returns: The first such rule; nil only if the subject gets no value of an audited key.
    /// - Complexity: O(*n*) in the audited patterns; at most 10,000 lists of whom rules allow are
    ///   looked at, as anybody may ask. After that a rule is returned for which it is not known.
    @inline(never)
    package func auditOfReading(
        matching pattern: Pattern,
        _ action: KeyAction,
        by subject: Subject?
    ) -> RulePlace? {
        guard let rules else { return nil }
        var remaining = 10_000
        let audit = rules.audits.first { audit in
            guard audit.includesReads, audit.pattern.mayMeet(pattern) else { return false }
            guard let subject else { return true }
            return rules.mayReveal(action, of: [audit.pattern, pattern], to: subject, &remaining)
        }
        return audit?.rule
    }
}

/// What the access options of all rules amount to.
package struct RuledAccess: Sendable {
    /// The options as text, by which a change of them is found; empty without any.
    package var text = ""
    /// The principals that some rule makes administrators.
    package var administrators: [Principal] = []
    /// The readers of each rule that names any.
    package var readers: [[Principal]] = []
    /// Whom rules let read and watch, the most specific first.
    package var allowed: [AllowedPattern] = []

    package init() {}
}

/// A pattern of a rule with a list of whom it allows an action.
package struct AllowedPattern: Sendable {
    package let pattern: Pattern
    package let action: KeyAction
    package let principals: [Principal]

    package init(_ pattern: Pattern, _ action: KeyAction, _ principals: [Principal]) {
        (self.pattern, self.action, self.principals) = (pattern, action, principals)
    }
}

extension KeyRules {
    /// Whether a subject may see the value of some key that matches all patterns.
    ///
    /// False only if it never may. Looks at `remaining` lists at most: true if they do not suffice.
    fileprivate func mayReveal(
        _ action: KeyAction,
        of patterns: [Pattern],
        to subject: Subject,
        _ remaining: inout Int
    ) -> Bool {
        // A watcher receives values, so it must be allowed to read.
        let actions = action == .watch ? [KeyAction.read, .watch] : [action]
        return actions.allSatisfy { action in
            for list in access.allowed where list.action == action {
                remaining -= 1
                guard remaining > 0 else { return true }
                guard patterns.allSatisfy({ list.pattern.mayMeet($0) }) else { continue }
                if list.principals.contains(where: { $0.means(subject, owner: subject.uid) }) {
                    return true
                }
                // For each key a list up to here decides, none of which allows it.
                if patterns.contains(where: { list.pattern.covers($0) }) { return false }
            }
            return true
        }
    }
}

extension Pattern {
    /// Whether it matches all keys that `other` matches; true only if it does.
    fileprivate func covers(_ other: Pattern) -> Bool {
        if self == other || meansEverything { return true }
        guard other.kind != .key else { return other.literal.withUnsafeBytes { matches($0) } }
        let isPrefix = kind == .prefix || bytes == Pattern.escaped(literal) + [UInt8(ascii: "*")]
        return isPrefix && other.literal.starts(with: literal)
    }
}
