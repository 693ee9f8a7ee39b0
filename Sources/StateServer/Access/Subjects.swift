import CLinux
import Glibc
import StateEngine

/// The subjects of connections; connections of one user with the same groups share a subject.
///
/// Used only by the loop thread.
struct Subjects {
    private var known: [UInt32: Subject] = [:]
    private let privileged: Set<UInt32>

    /// The most users that are remembered at once.
    private static let capacity = 1_024

    /// - Parameter privileged: The users whom no rule restricts.
    init(privileged: Set<UInt32>) { self.privileged = privileged }

    /// The subject of `peer`, with the groups that it had when it connected.
    mutating func subject(of peer: clinux_peer, on descriptor: Int32) -> Subject {
        let isPrivileged = privileged.contains(peer.uid)
        // The groups of a privileged user do not matter.
        let groups = isPrivileged ? [peer.gid] : Subjects.groups(of: peer, descriptor)
        if let subject = known[peer.uid], subject.groups == groups { return subject }
        let subject = Subject(uid: peer.uid, groups: groups, isPrivileged: isPrivileged)
        if known.count >= Subjects.capacity { known.removeAll() }
        known[peer.uid] = subject
        return subject
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
