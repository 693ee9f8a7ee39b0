import CLinux
import Glibc
import StateEngine

/// The subjects of connections; those of one user with the same groups and unit share a subject.
///
/// Used only by the loop thread.
struct Subjects {
    private var known: [UInt32: Subject] = [:]
    private let privileged: Set<UInt32>
    private let namespace: UserNamespace
    /// Whether units are read: a third of what a connection costs, so only while a rule names one.
    var readsUnits = false

    /// The most users that are remembered at once.
    private static let capacity = 1_024

    /// - Parameters:
    ///   - privileged: The users whom no rule restricts.
    ///   - namespace: The users that are told apart.
    init(privileged: Set<UInt32>, in namespace: UserNamespace) {
        (self.privileged, self.namespace) = (privileged, namespace)
    }

    /// The subject of `peer`, with the groups that it had when it connected, and the unit that its
    /// process is in now.
    mutating func subject(of peer: clinux_peer, on descriptor: Int32) -> Subject {
        let isMapped = peer.uid != namespace.overflowUser
        let isPrivileged = isMapped && privileged.contains(peer.uid)
        // The groups of a privileged user do not matter.
        var groups = isPrivileged ? [peer.gid] : Subjects.groups(of: peer, descriptor)
        if let overflowGroup = namespace.overflowGroup { groups.remove(overflowGroup) }
        // All such users would share the rights of the groups of each.
        if !isMapped { groups = [] }
        let unit = isPrivileged || !readsUnits ? nil : Subjects.unit(of: peer, descriptor)
        if let subject = known[peer.uid], subject.groups == groups, subject.unit == unit {
            return subject
        }
        let subject = Subject(
            uid: peer.uid,
            isMapped: isMapped,
            groups: groups,
            unit: unit,
            isPrivileged: isPrivileged
        )
        if known.count >= Subjects.capacity { known.removeAll() }
        known[peer.uid] = subject
        return subject
    }

    /// The unit of the process that connected; nil if it cannot be known for sure.
    ///
    /// Linux names the process itself since 6.5. Before, only its number is known, which another
    /// process may have got meanwhile.
    private static func unit(of peer: clinux_peer, _ descriptor: Int32) -> String? {
        // The path of a control group has at most PATH_MAX bytes; cgroup version 1 has 14 lines.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 8_192) { room in
            let count = clinux_peer_control_groups(
                descriptor,
                peer.pid,
                room.baseAddress,
                Int32(room.count)
            )
            guard count > 0 else { return nil }
            let text = UnsafeRawBufferPointer(room)[..<Int(count)]
            return SystemUnit.name(inControlGroups: String(decoding: text, as: UTF8.self))
        }
    }

    /// The primary group and the supplementary ones; only the former if the kernel does not report
    /// them.
    private static func groups(of peer: clinux_peer, _ descriptor: Int32) -> Set<UInt32> {
        var groups: Set<UInt32> = [peer.gid]
        // NGROUPS_MAX is 65,536, but most users are in a few groups.
        for capacity in [64, 65_536] {
            let isWhole = withUnsafeTemporaryAllocation(of: gid_t.self, capacity: capacity) {
                room in
                let count = clinux_peer_groups(descriptor, room.baseAddress, Int32(capacity))
                guard count >= 0 else { return errno != ERANGE }
                groups.formUnion(room[..<Int(count)])
                return true
            }
            if isWhole { break }
        }
        return groups
    }
}
