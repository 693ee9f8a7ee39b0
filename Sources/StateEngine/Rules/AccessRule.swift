/// The access options of a rule, for subjects that rules can restrict.
///
/// Never asked for a privileged subject.
package struct AccessRule: ~Copyable, Sendable {
    // Nil for everybody.
    private let readers: AccessList?
    private let writers: AccessList?
    private let watchers: AccessList?
    private let creators: AccessList?
    private let admins: AccessList?
    private let isCreateNamed: Bool
    /// If not, only privileged subjects are administrators.
    private let isAdminNamed: Bool
    /// Whether some permission depends on the owner of an entry.
    let asksForOwner: Bool
    /// Whether it restricts setting or deleting.
    let limitsWriting: Bool
    /// Whether a write may depend on who has the key, or on whether it is there.
    var limitsAnything: Bool { limitsWriting || limitsReading }
    /// Whether it restricts reading.
    package let limitsReading: Bool
    /// Whether it restricts watching.
    let limitsSight: Bool

    init(_ settings: KeyRule.Settings) {
        readers = AccessList(settings.access[.read])
        writers = AccessList(settings.access[.write])
        watchers = AccessList(settings.access[.watch])
        creators = AccessList(settings.access[.create])
        admins = AccessList(settings.access[.admin])
        isCreateNamed = settings.access[.create] != nil
        isAdminNamed = settings.access[.admin] != nil
        asksForOwner = [readers, writers, watchers, admins].contains { $0?.namesOwner ?? false }
        limitsReading = readers != nil
        limitsSight = readers != nil || watchers != nil
        limitsWriting = writers != nil || creators != nil
    }

    /// Why `subject` may not do something to a key; nil if it may.
    ///
    /// - Complexity: O(*n*) in the users and groups of one rule, two for ``KeyAction/watch``;
    ///   nothing is allocated.
    package func denial(
        _ action: KeyAction,
        _ subject: Subject,
        _ target: AccessTarget
    ) -> AccessDenial? {
        switch action {
        case .read: denial(action, readers, subject, target)
        case .watch:
            // A watcher receives values, so it must be allowed to read.
            denial(.read, readers, subject, target) ?? denial(action, watchers, subject, target)
        case .write: denial(action, writers, subject, target)
        case .create: denialOfCreating(subject)
        case .admin:
            if let admins {
                denial(action, admins, subject, target)
            } else if isAdminNamed {
                nil
            } else {
                AccessDenial(action: .admin, rule: nil)
            }
        }
    }

    /// Whether `subject` may do `action`.
    package func allows(
        _ action: KeyAction,
        _ subject: Subject,
        _ target: AccessTarget
    ) -> Bool { denial(action, subject, target) == nil }

    private func denial(
        _ action: KeyAction,
        _ list: AccessList?,
        _ subject: Subject,
        _ target: AccessTarget
    ) -> AccessDenial? {
        guard let list, !list.means(subject, owner: owner(list, subject, target)) else {
            return nil
        }
        return AccessDenial(action: action, rule: list.rule)
    }

    private func owner(
        _ list: AccessList,
        _ subject: Subject,
        _ target: AccessTarget
    ) -> UInt32? {
        guard list.namesOwner else { return nil }
        switch target {
        case .entry(let owner): return owner
        case .absent: return denialOfCreating(subject) == nil ? subject.uid : nil
        case .any: return subject.uid
        case .unowned: return nil
        }
    }

    /// An absent key has no owner.
    ///
    /// If the rule has `create`, whoever may create the key would be its owner; otherwise `write`
    /// must allow the subject without ownership.
    private func denialOfCreating(_ subject: Subject) -> AccessDenial? {
        let futureOwner = isCreateNamed ? subject.uid : nil
        if let writers, !writers.means(subject, owner: futureOwner) {
            return AccessDenial(action: .write, rule: writers.rule)
        }
        if let creators, !creators.means(subject, owner: nil) {
            return AccessDenial(action: .create, rule: creators.rule)
        }
        return nil
    }
}

/// A denial of access by a rule.
package struct AccessDenial: Hashable, Sendable {
    package let action: KeyAction
    /// Nil if no rule names the action.
    package let rule: RulePlace?

    package init(action: KeyAction, rule: RulePlace?) {
        (self.action, self.rule) = (action, rule)
    }

    /// The error; it reveals nothing beyond the request.
    package func error(_ what: String, _ subject: Subject) -> StateError {
        StateError(
            .noPermission,
            "\(what): \(subject.name) may not \(action.sentence) (\(place), \(action.rawValue))"
        )
    }

    /// The rule, for messages.
    package var place: String { rule?.description ?? "no rule" }

    /// The same for a key.
    package func error(key: Bytes, _ subject: Subject) -> StateError {
        error("key \(StateError.quoted(key))", subject)
    }
}

extension KeyAction {
    /// The words after "may not".
    fileprivate var sentence: String {
        switch self {
        case .read: "read it"
        case .write: "write it"
        case .watch: "watch it"
        case .create: "create it"
        case .admin: "administer it"
        }
    }
}

extension KeyspaceCore {
    /// Why a subject has no admin rights for all keys; nil if it has.
    package func adminDenial(of subject: Subject) -> AccessDenial? {
        guard !subject.isPrivileged else { return nil }
        guard let rule = rules?.ruleOfAll else { return AccessDenial(action: .admin, rule: nil) }
        return rule.access.denial(.admin, subject, .unowned)
    }
}

/// The subjects that a rule allows one action, extracted once so that checks allocate nothing.
package struct AccessList: Sendable {
    package let rule: RulePlace
    /// Whether it includes the creator of an entry.
    package let namesOwner: Bool
    private let users: [UInt32]
    private let groups: [UInt32]
    private let units: [String]

    /// The list of a rule; nil if it allows everybody.
    init?(_ setting: KeyRule.Setting<[Principal]>?) {
        guard let setting, !setting.value.contains(.everybody) else { return nil }
        rule = setting.rule
        namesOwner = setting.value.contains(.owner)
        var (users, groups, units): ([UInt32], [UInt32], [String]) = ([], [], [])
        for principal in setting.value {
            switch principal {
            case .everybody, .owner: break
            case .user(let uid, _): users.append(uid)
            case .group(let gid, _): groups.append(gid)
            case .unit(let name): units.append(name)
            }
        }
        (self.users, self.groups, self.units) = (users, groups, units)
    }

    /// Whether it includes `subject`, if the entry belongs to `owner`; nil if there is none.
    ///
    /// - Complexity: O(*n*) in the users, groups and units of the rule.
    package func means(_ subject: Subject, owner: UInt32?) -> Bool {
        if subject.isMapped {
            if namesOwner, owner == subject.uid { return true }
            if users.contains(subject.uid) { return true }
        }
        if groups.contains(where: { subject.groups.contains($0) }) { return true }
        return !units.isEmpty && subject.unit.map { units.contains($0) } ?? false
    }
}

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
}

/// A key that is being set exists, and is hidden from the writer.
struct HiddenKey {
    /// Why it cannot be set although an absent key could; nil if it may be overwritten.
    var taken: AccessDenial?
}
