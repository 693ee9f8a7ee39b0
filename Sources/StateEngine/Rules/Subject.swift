/// The target of an access check.
package enum AccessTarget {
    /// An entry that belongs to a uid.
    case entry(owner: UInt32)
    /// A key without an entry: its future owner is whoever may create it.
    case absent
    /// Any of these, now, earlier or later: a subject is refused only if all are denied.
    case any
    /// Something without an owner, such as a channel.
    case unowned
}

/// The requester, as the kernel reports the peer of a socket.
package final class Subject: Sendable {
    package let uid: UInt32
    /// Whether ``uid`` is that of one user; if not, it stands for all users that the daemon's user
    /// namespace does not map, and is nobody's.
    package let isMapped: Bool
    /// The primary group and the supplementary ones.
    package let groups: Set<UInt32>
    /// The unit of systemd that it runs in, such as `app.service`; nil if there is none.
    package let unit: String?
    /// Whether it is root or the daemon's own user, whom no rule restricts.
    package let isPrivileged: Bool

    package init(
        uid: UInt32,
        isMapped: Bool = true,
        groups: Set<UInt32>,
        unit: String? = nil,
        isPrivileged: Bool
    ) {
        (self.uid, self.isMapped) = (uid, isMapped)
        self.unit = unit
        self.groups = groups
        self.isPrivileged = isPrivileged
    }

    /// Whether it is the user of this number.
    package func isUser(_ uid: UInt32) -> Bool { self.uid == uid && isMapped }

    /// The user, for messages.
    package var name: String {
        isMapped
            ? "uid \(uid)"
            : "uid \(uid), which is no user: this user namespace does not map who connected,"
    }
}

/// An action on keys.
package enum KeyAction: String, CaseIterable, Sendable {
    case read, write, watch, create, admin
}

/// Whom a rule allows an action.
package enum Principal: Hashable, Sendable {
    case everybody
    /// The creator of the entry.
    case owner
    case user(UInt32, name: String)
    case group(UInt32, name: String)
    /// The processes of a unit of the system's service manager.
    case unit(String)

    /// Whether it includes `subject`, if the entry belongs to `owner`; nil if there is none.
    package func means(_ subject: Subject, owner: UInt32?) -> Bool {
        switch self {
        case .everybody: true
        case .owner: owner.map { subject.isUser($0) } ?? false
        case .user(let uid, _): subject.isUser(uid)
        case .group(let gid, _): subject.groups.contains(gid)
        case .unit(let name): subject.unit == name
        }
    }
}
