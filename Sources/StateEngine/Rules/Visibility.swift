/// What one subject may see: every reply, push, cursor, error and report is filtered by it.
///
/// A key that the subject may not read is *hidden* from it. A hidden key is answered like an absent
/// one, byte for byte: it is refused with the same errors. There is one difference: a write that
/// would have created the key is refused, because the name is taken. What is the same for all keys
/// is visible to everybody: the revision of the keyspace.
///
/// The rules are those of the keyspace, under its lock, or a copy for one thread
/// (``KeyRules/init(copying:)``): the proof of `@unchecked Sendable`.
package struct Visibility: @unchecked Sendable {
    /// The subject, if the rules may restrict it; otherwise nil.
    private let subject: Subject?
    private let rules: KeyRules?

    /// Nothing is hidden.
    package static var everything: Visibility { Visibility() }

    private init() { (subject, rules) = (nil, nil) }

    /// What everybody may see, whoever it is: ask it with ``AccessTarget/unowned``.
    package static func ofEverybody(_ rules: KeyRules) -> Visibility {
        // No user has this uid: it means "no user" to chown and setresuid.
        Visibility(Subject(uid: .max, groups: [], isPrivileged: false), rules)
    }

    /// - Parameters:
    ///   - subject: Who sees.
    ///   - rules: The rules that hide keys from it.
    package init(_ subject: Subject, _ rules: KeyRules) {
        (self.subject, self.rules) = (subject, rules)
    }

    /// The same, if the rules may restrict the subject.
    package init(restricting subject: Subject, _ rules: KeyRules) {
        let isRestricted = !subject.isPrivileged && rules.limitsAccess
        (self.subject, self.rules) = isRestricted ? (subject, rules) : (nil, nil)
    }

    /// Whether the subject may see a version of a key.
    ///
    /// - Parameters:
    ///   - action: ``KeyAction/read`` if it asks, ``KeyAction/watch`` if it watches.
    ///   - record: The version.
    /// - Returns: Whether it may.
    package func mayReveal(_ action: KeyAction, about record: Record) -> Bool {
        mayReveal(action, about: record.key, owner: record.owner)
    }

    /// The same for a version that is not in memory.
    package func mayReveal(_ action: KeyAction, about key: Bytes, owner: UInt32) -> Bool {
        mayEverReveal(action, about: key, .entry(owner: owner))
    }

    /// The same for a version in the history.
    package func mayReveal(_ action: KeyAction, about change: borrowing StoredChange) -> Bool {
        mayReveal(action, about: change.key, owner: change.owner)
    }

    /// Whether the subject may see an entry of the key, now, earlier or later.
    package func mayEverReveal(
        _ action: KeyAction,
        about key: Bytes,
        _ target: AccessTarget = .any
    ) -> Bool {
        guard let rules, let subject else { return true }
        return rules.rule(for: key)?.access.allows(action, subject, target) ?? true
    }

    /// Whether the subject may see every possible key: only then may it see counts of all keys.
    package var showsEverything: Bool {
        guard let rules, let subject else { return true }
        return rules.showsEverything(to: subject)
    }

    /// Whether the subject may know what a pattern says: some key that matches may be read.
    package func mayReveal(patternOf pattern: Pattern, _ target: AccessTarget = .any) -> Bool {
        guard rules != nil, subject != nil else { return true }
        return pattern.examples.contains { key in
            key.withUnsafeBytes { mayEverReveal(.read, about: $0, target) }
        }
    }

    /// How much of a rule the subject may see.
    ///
    /// - Parameters:
    ///   - keys: The pattern of the rule.
    ///   - target: ``AccessTarget/unowned`` for readers of whom nothing is known.
    /// - Returns: The part.
    package func part(
        ofRuleFor keys: [UInt8],
        _ target: AccessTarget = .any
    ) -> VisiblePart {
        guard rules != nil, subject != nil else { return .everything }
        let read = keys.withUnsafeBytes { bytes in
            Result { () throws(StateError) in try Pattern(bytes) }
        }
        guard case .success(let pattern) = read else { return .nothing }
        if mayReveal(patternOf: pattern, target) { return .everything }
        return pattern.kind == .key ? .nothing : .withoutValues
    }

    /// A rule as the subject may see it: without values of keys that it may not read; nil if the
    /// rule names such a key.
    package func shown(_ rule: RuleDescription) -> RuleDescription? {
        switch part(ofRuleFor: rule.keys) {
        case .everything: return rule
        case .nothing: return nil
        case .withoutValues:
            var shown = rule
            shown.options.removeAll { VisiblePart.hasValues(option: $0.name) }
            return shown
        }
    }
}

/// How much of a rule somebody may see.
package enum VisiblePart: Comparable {
    /// The rule names a key that is hidden.
    case nothing
    /// All but options that have values of keys.
    case withoutValues
    case everything

    /// Whether an option of a rule has values of its keys, or says what they may be.
    package static func hasValues(option name: String) -> Bool {
        name == "default" || name == "schema"
    }
}

extension Pattern {
    /// Keys that match, to find the rules of a pattern; none if a glob is too complicated.
    package var examples: [[UInt8]] {
        let examples: [[UInt8]] =
            switch kind {
            case .key: [literal]
            case .prefix: [literal + [UInt8(ascii: "x")]]
            case .glob: ["", "x"].map { example(star: Array($0.utf8)) }
            }
        return examples.filter { key in
            key.withUnsafeBytes { Key.fault(of: $0) == nil && matches($0) }
        }
    }

    /// The glob with `star` for each `*`, `x` for each `?`, and the first member for each class.
    private func example(star: [UInt8]) -> [UInt8] {
        var key: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch byte {
            case UInt8(ascii: "*"): key += star
            case UInt8(ascii: "?"): key.append(UInt8(ascii: "x"))
            case UInt8(ascii: "\\") where index < bytes.count:
                key.append(bytes[index])
                index += 1
            case UInt8(ascii: "["):
                guard index < bytes.count else { return key }
                key.append(bytes[index] == UInt8(ascii: "^") ? UInt8(ascii: "x") : bytes[index])
                index = (bytes[index...].firstIndex(of: UInt8(ascii: "]")) ?? bytes.count - 1) + 1
            default: key.append(byte)
            }
        }
        return key
    }
}

/// Who may see one thing, if not everybody may: like ``Visibility``, but for many subjects.
package struct Audience {
    private let rule: KeyRule
    private let action: KeyAction
    private let target: AccessTarget

    init(_ rule: KeyRule, _ action: KeyAction, _ target: AccessTarget) {
        (self.rule, self.action, self.target) = (rule, action, target)
    }

    package func admits(_ subject: Subject) -> Bool {
        subject.isPrivileged || rule.access.allows(action, subject, target)
    }
}

extension Pattern {
    /// Whether it matches every possible key, however it is written.
    package var meansEverything: Bool {
        guard literal.isEmpty else { return false }
        switch kind {
        case .key: return false
        case .prefix: return true
        case .glob:
            let stars = bytes.count { $0 == UInt8(ascii: "*") }
            let singles = bytes.count { $0 == UInt8(ascii: "?") }
            return stars > 0 && singles <= 1 && stars + singles == bytes.count
        }
    }
}
