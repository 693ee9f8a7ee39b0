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
