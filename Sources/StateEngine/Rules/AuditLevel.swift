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

    /// Whether some key may match both; false only if none does.
    package func mayShareKeys(with other: Pattern) -> Bool {
        switch (pattern.kind, other.kind) {
        case (.key, .key): pattern.literal == other.literal
        case (.key, _): pattern.literal.withUnsafeBytes { other.matches($0) }
        case (_, .key): other.literal.withUnsafeBytes { pattern.matches($0) }
        default:
            pattern.literal.starts(with: other.literal)
                || other.literal.starts(with: pattern.literal)
        }
    }
}

extension KeyspaceCore {
    /// The rule that has reads of a key logged, if a read would give its value to a subject.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - subject: Who reads; nil is unrestricted.
    ///   - mayBePast: Whether what it was before counts, so that it need not be there.
    /// - Returns: The rule; nil if there is none, or if the subject gets no value.
    @inline(never)
    package func auditOfReading(
        _ key: Bytes,
        by subject: Subject?,
        mayBePast: Bool
    ) -> RulePlace? {
        guard let rule = rules?.rule(for: key), let audit = rule.settings.audit,
            audit.value == .reads
        else { return nil }
        let head = entries.head(key)
        let isThere = !(head?.isDeleted ?? true) || rules?.standards[key] != nil
        guard mayBePast || isThere else { return nil }
        if let subject {
            let target: AccessTarget =
                if mayBePast { .any } else if let head { .entry(owner: head.owner) } else {
                    .absent
                }
            guard rule.access.allows(.read, subject, target) else { return nil }
        }
        return audit.rule
    }
}
