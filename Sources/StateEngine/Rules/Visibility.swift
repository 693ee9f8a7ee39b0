/// What one subject may be told: every reply, push, cursor, error and report passes it.
///
/// A key that the subject may not read is *hidden* from it. A hidden key answers as an absent one does, byte for byte: what an absent
/// key would be refused with, a hidden one is refused with, too. One thing tells them apart: a write that would have created the key
/// is refused, for the name is taken. What is the same for all keys is told to everybody: the revision of the keyspace.
///
/// The rules are those of the keyspace, under its lock, or a copy that one thread has for itself (``KeyRules/init(copying:)``): the
/// proof of `@unchecked Sendable`.
package struct Visibility: @unchecked Sendable {
    private let subject: Subject
    private let rules: KeyRules

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
    package func mayTell(_ action: KeyAction, about record: Record) -> Bool {
        mayTell(action, about: record.key, owner: record.owner)
    }

    /// The same for a version that is not in memory.
    package func mayTell(_ action: KeyAction, about key: Bytes, owner: UInt32) -> Bool {
        rules.rule(for: key)?.allows(action, subject, .entry(owner: owner)) ?? true
    }

    /// Whether the subject may be told of an entry of the key, now, earlier or later.
    package func mayEverTell(
        _ action: KeyAction,
        about key: Bytes,
        _ target: AccessTarget = .any
    ) -> Bool {
        rules.rule(for: key)?.allows(action, subject, target) ?? true
    }

    /// Whether every key that there can be may be told of: only then numbers of all keys are.
    package var showsEverything: Bool { rules.showsEverything(to: subject) }

    /// What a rule says, as the subject may know it: no values of keys that it may not read, and nothing of a rule that names such
    /// a key.
    package func shown(_ rule: RuleDescription) -> RuleDescription? {
        let read = rule.keys.withUnsafeBytes { bytes in
            Result { () throws(StateError) in try Pattern(bytes) }
        }
        guard case .success(let pattern) = read else { return nil }
        let mayRead = pattern.examples.contains { key in
            key.withUnsafeBytes { mayEverTell(.read, about: $0) }
        }
        guard !mayRead else { return rule }
        guard pattern.kind != .key else { return nil }
        var shown = rule
        shown.options.removeAll { $0.name == "default" || $0.name == "schema" }
        return shown
    }
}

extension Visibility? {
    /// The same; nil stands for a subject from whom nothing is hidden.
    package func mayTell(_ action: KeyAction, about change: borrowing StoredChange) -> Bool {
        self?.mayTell(action, about: change.key, owner: change.owner) ?? true
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

    fileprivate init(_ rule: KeyRule, _ target: AccessTarget) {
        (self.rule, self.target) = (rule, target)
    }

    package func admits(_ subject: Subject) -> Bool {
        subject.isPrivileged || rule.allows(.watch, subject, target)
    }
}

// MARK: Of a keyspace

extension KeyspaceCore {
    /// What a subject may be told; nil where that is everything.
    package func visibility(of subject: Subject) -> Visibility? {
        guard let subject = restriction(of: subject), let rules else { return nil }
        return Visibility(subject, rules)
    }

    /// Who may be told of what has a name as keys have; nil: everybody.
    package func audience(of key: Bytes, _ target: AccessTarget) -> Audience? {
        guard let rules, rules.limitsAccess, let rule = rules.rule(for: key), rule.limitsSight
        else { return nil }
        return Audience(rule, target)
    }

    /// Whether `subject` is shown a version in lists; nil is shown everything.
    package func mayRead(_ record: Record, _ subject: Subject?) -> Bool {
        guard let subject, let rules else { return true }
        return Visibility(subject, rules).mayTell(.read, about: record)
    }

    /// The newest version of `key` as `subject` sees it; nil where it is absent or hidden, and for nil as ``read(_:)``.
    ///
    /// Of a hidden version nothing counts as observed, so that no reply waits for it.
    ///
    /// - Complexity: as ``require(_:of:for:)``.
    package func read(
        _ key: Bytes,
        for subject: Subject?,
        _ receipt: inout Receipt
    ) -> Record? {
        guard let subject, let rule = rules?.rule(for: key), rule.limitsReading,
            let head = entries.head(key)
        else { return read(key, &receipt) }
        guard !rule.allows(.read, subject, .entry(owner: head.owner)) else {
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
        guard let subject, let rule = rules?.rule(for: key), rule.limitsReading else {
            return read(key, &receipt)
        }
        // Where nothing depends on owners, nobody sees some keys of a rule and not the others.
        let head = rule.asksForOwner ? entries.head(key) : nil
        if let owner = owner(of: head), rule.allows(.read, subject, .entry(owner: owner)) {
            return read(key, &receipt)
        }
        if let denial = rule.denial(.read, subject, .absent) { throw refuse(denial, key, subject) }
        guard rule.asksForOwner else { return read(key, &receipt) }
        if let head { noteHidden(head, rule, subject, &receipt) }
        return nil
    }

    /// Refuses what `subject` may not do to a key as it sees it: to a hidden one what it may not do to an absent one.
    ///
    /// - Throws: as ``require(_:of:for:)``.
    package func require(
        _ action: KeyAction,
        ofSeen key: Bytes,
        for subject: Subject
    ) throws(StateError) {
        guard let rule = rules?.rule(for: key) else {
            return try require(action, of: key, for: subject)
        }
        let target = seen(key, entries.head(key), rule, subject)
        let denial =
            rule.denial(action, subject, target)
            // What is done to a key tells whether it is there.
            ?? rule.denial(.read, subject, target)
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
        return rule.allows(.read, subject, target) ? target : .absent
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
            rule.allows(.read, subject, .entry(owner: durable.owner))
        else { return }
        receipt.noteRead(head.revision)
    }
}
