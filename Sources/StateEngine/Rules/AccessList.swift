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
