import CTestUsers
import Glibc

/// A user of this machine whom a test connects as.
package struct TestUser: Sendable {
    package let uid: UInt32
    package let gid: UInt32
    package let groups: [UInt32]

    /// The users that `scripts/test` makes: the first is in the group `stated-test`, the second is not.
    package static let names = ["stated-test-a", "stated-test-b"]

    /// Whether a test may connect as them.
    package static let areThere = geteuid() == 0 && names.allSatisfy { TestUser($0) != nil }

    /// A user by number alone, who need not be known to this machine.
    package init(uid: UInt32, gid: UInt32? = nil) {
        (self.uid, self.gid, groups) = (uid, gid ?? uid, [])
    }

    /// Finds a user with all of his groups; nil where there is none of that name.
    package init?(_ name: String) {
        guard let entry = getpwnam(name) else { return nil }
        (uid, gid) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
        var groups = [gid_t](repeating: 0, count: 64)
        var count = Int32(groups.count)
        guard getgrouplist(name, gid, &groups, &count) >= 0 else { return nil }
        self.groups = Array(groups.prefix(Int(count)))
    }

    /// Connects as this user; only root may.
    package func connect(to path: String) throws -> ByteSocket {
        ByteSocket(connected: try connectedDescriptor(to: path))
    }

    /// The same as a stream socket, of which the caller disposes.
    package func connectedDescriptor(to path: String) throws -> Int32 {
        let descriptor = ctest_connect_as(path, uid, gid, groups, groups.count)
        guard descriptor >= 0 else { throw SystemFailure(call: "connect as uid \(uid)", errno) }
        return descriptor
    }
}

extension ByteSocket {
    /// A socket whose peer, as the server sees it, is a process that has ended.
    package static func ofEndedProcess(connectedTo path: String) throws -> ByteSocket {
        let descriptor = ctest_connect_from_child(path)
        guard descriptor >= 0 else { throw SystemFailure(call: "connect from a child", errno) }
        return ByteSocket(connected: descriptor)
    }
}
