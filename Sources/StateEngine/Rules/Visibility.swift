/// What one subject may be told: every reply, push, cursor, error and report passes it.
///
/// A key that the subject may not read is *hidden* from it. A hidden key answers as an absent one does, byte for byte: what an absent
/// key would be refused with, a hidden one is refused with, too. One thing tells them apart: a write that would have created the key
/// is refused, for the name is taken. What is the same for all keys is told to everybody: the revision of the keyspace.
///
/// The rules are those of the keyspace, under its lock, or a copy that one thread has for itself (``KeyRules/init(copying:)``): the
/// proof of `@unchecked Sendable`.
package struct Visibility: @unchecked Sendable {
    /// Whom the rules may keep out of something; nil for whom they do not.
    private let subject: Subject?
    private let rules: KeyRules?

    /// Nothing is hidden.
    package static var everything: Visibility { Visibility() }

    private init() { (subject, rules) = (nil, nil) }

    /// - Parameters:
    ///   - subject: Who is told.
    ///   - rules: What hides keys from it.
    package init(_ subject: Subject, _ rules: KeyRules) {
        (self.subject, self.rules) = (subject, rules)
    }

    /// Whether the subject may be told of a version of a key.
    ///
    /// - Parameters:
    ///   - action: ``KeyAction/read`` where it asks, ``KeyAction/watch`` where it is told unasked.
    ///   - record: The version.
    /// - Returns: Whether it may.
    package func mayReveal(_ action: KeyAction, about record: Record) -> Bool {
        mayReveal(action, about: record.key, owner: record.owner)
    }

    /// The same for a version that is not in memory.
    package func mayReveal(_ action: KeyAction, about key: Bytes, owner: UInt32) -> Bool {
        mayEverReveal(action, about: key, .entry(owner: owner))
    }

    /// The same for a version that is in the history.
    package func mayReveal(_ action: KeyAction, about change: borrowing StoredChange) -> Bool {
        mayReveal(action, about: change.key, owner: change.owner)
    }

    /// Whether the subject may be told of an entry of the key, now, earlier or later.
    package func mayEverReveal(
        _ action: KeyAction,
        about key: Bytes,
        _ target: AccessTarget = .any
    ) -> Bool {
        guard let rules, let subject else { return true }
        return rules.rule(for: key)?.access.allows(action, subject, target) ?? true
    }

    /// Whether every key that there can be may be told of: only then numbers of all keys are.
    package var showsEverything: Bool {
        guard let rules, let subject else { return true }
        return rules.showsEverything(to: subject)
    }

    /// What a rule says, as the subject may know it: no values of keys that it may not read, and nothing of a rule that names such
    /// a key.
    package func shown(_ rule: RuleDescription) -> RuleDescription? {
        guard rules != nil else { return rule }
        let read = rule.keys.withUnsafeBytes { bytes in
            Result { () throws(StateError) in try Pattern(bytes) }
        }
        guard case .success(let pattern) = read else { return nil }
        let mayRead = pattern.examples.contains { key in
            key.withUnsafeBytes { mayEverReveal(.read, about: $0) }
        }
        guard !mayRead else { return rule }
        guard pattern.kind != .key else { return nil }
        var shown = rule
        shown.options.removeAll { $0.name == "default" || $0.name == "schema" }
        return shown
    }
}

extension Pattern {
    /// Keys that are meant, for what is asked of a pattern by way of its keys; none where a glob is too intricate.
    fileprivate var examples: [[UInt8]] {
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

/// Who may be told of one thing, where not everybody may: what ``Visibility`` says, asked for many subjects.
package struct Audience {
    private let rule: KeyRule
    private let target: AccessTarget

    init(_ rule: KeyRule, _ target: AccessTarget) {
        (self.rule, self.target) = (rule, target)
    }

    package func admits(_ subject: Subject) -> Bool {
        subject.isPrivileged || rule.access.allows(.watch, subject, target)
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
