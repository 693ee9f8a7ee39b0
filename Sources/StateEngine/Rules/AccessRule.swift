/// Who may do what to the keys of a rule, beside those whom no rule keeps out.
///
/// None of these is asked for a subject whom no rule keeps out.
package struct AccessRule: ~Copyable, Sendable {
    // Nil for everybody.
    private let readers: AccessList?
    private let writers: AccessList?
    private let watchers: AccessList?
    private let creators: AccessList?
    private let admins: AccessList?
    private let isCreateNamed: Bool
    /// If it is not, nobody else is an administrator.
    private let isAdminNamed: Bool
    /// Whether it depends on the owner of an entry who may do what.
    let asksForOwner: Bool
    /// Whether anybody is kept from setting or deleting.
    let limitsWriting: Bool
    /// Whether anybody is kept from reading.
    let limitsReading: Bool
    /// Whether anybody is kept from watching.
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

    /// Why `subject` may not do something to a key; nil where it may.
    ///
    /// - Complexity: O(*n*) in the users and groups of one rule, two for ``KeyAction/watch``; nothing is allocated.
    package func denial(
        _ action: KeyAction,
        _ subject: Subject,
        _ target: AccessTarget
    ) -> AccessDenial? {
        switch action {
        case .read: denial(action, readers, subject, target)
        case .watch:
            // Who watches is told values.
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

    /// Whether `subject` may.
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

    /// An absent key has no owner: who may create it where `create` is named would be, else `write` has to mean him without that.
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

/// That a rule keeps somebody out.
package struct AccessDenial: Hashable, Sendable {
    package let action: KeyAction
    /// The place of the rule in the configuration, from 0; nil where no rule names the action.
    package let rule: Int?

    package init(action: KeyAction, rule: Int?) {
        (self.action, self.rule) = (action, rule)
    }

    /// The refusal; nothing in it tells of more than was asked for.
    package func error(_ what: String, _ subject: Subject) -> StateError {
        let place = rule.map { "rule \($0 + 1)" } ?? "no rule"
        return StateError(
            .noPermission,
            "\(what): uid \(subject.uid) may not \(action.sentence) (\(place), \(action.rawValue))"
        )
    }

    /// The same for a key.
    package func error(key: Bytes, _ subject: Subject) -> StateError {
        error("key \(StateError.quoted(key))", subject)
    }
}

extension KeyAction {
    /// Behind "may not".
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

/// Whom a rule lets do one thing, taken out of its principals once so that asking allocates nothing.
package struct AccessList: Sendable {
    /// The place of the rule in the configuration, from 0.
    package let rule: Int
    /// Whether whoever created an entry is meant.
    package let namesOwner: Bool
    private let users: [UInt32]
    private let groups: [UInt32]

    /// What a rule says; nil where that is everybody.
    init?(_ setting: KeyRule.Setting<[Principal]>?) {
        guard let setting, !setting.value.contains(.everybody) else { return nil }
        rule = setting.rule
        namesOwner = setting.value.contains(.owner)
        var (users, groups): ([UInt32], [UInt32]) = ([], [])
        for principal in setting.value {
            switch principal {
            case .everybody, .owner: break
            case .user(let uid, _): users.append(uid)
            case .group(let gid, _): groups.append(gid)
            }
        }
        (self.users, self.groups) = (users, groups)
    }

    /// Whether `subject` is meant, where the entry belongs to `owner`; nil where there is none.
    ///
    /// - Complexity: O(*n*) in the users and groups of the rule.
    package func means(_ subject: Subject, owner: UInt32?) -> Bool {
        if namesOwner, owner == subject.uid { return true }
        if users.contains(subject.uid) { return true }
        return groups.contains { subject.groups.contains($0) }
    }
}

/// What an access list is asked of beside the subject.
package enum AccessTarget {
    /// An entry that belongs to a uid.
    case entry(owner: UInt32)
    /// A key without an entry: `owner` is whoever may create it.
    case absent
    /// What may be one of these, now, earlier or later: only who is kept out of all is refused.
    case any
    /// What has no owner, such as a channel.
    case unowned
}

/// Who asks, as the kernel says of the peer of a socket.
package final class Subject: Sendable {
    package let uid: UInt32
    /// The primary group and the supplementary ones.
    package let groups: Set<UInt32>
    /// Whether it is root or the daemon's own user, whom no rule keeps out.
    package let isPrivileged: Bool

    package init(uid: UInt32, groups: Set<UInt32>, isPrivileged: Bool) {
        self.uid = uid
        self.groups = groups
        self.isPrivileged = isPrivileged
    }
}

/// What somebody does to keys.
package enum KeyAction: String, CaseIterable, Sendable {
    case read, write, watch, create, admin
}

/// Who may.
package enum Principal: Hashable, Sendable {
    case everybody
    /// Whoever created the entry.
    case owner
    case user(UInt32, name: String)
    case group(UInt32, name: String)

    /// Whether `subject` is meant, where the entry belongs to `owner`; nil where there is none.
    package func means(_ subject: Subject, owner: UInt32?) -> Bool {
        switch self {
        case .everybody: true
        case .owner: owner == subject.uid
        case .user(let uid, _): subject.uid == uid
        case .group(let gid, _): subject.groups.contains(gid)
        }
    }
}
