import CLinux
import Glibc

/// The users and groups that the daemon's user namespace can tell apart.
///
/// In a namespace that maps only some, as in a rootless container, the kernel reports all others by one
/// number, the overflow uid or gid: they are many users, and none of them.
/// https://man7.org/linux/man-pages/man7/user_namespaces.7.html
package struct UserNamespace: Sendable {
    /// What stands for all users that are not mapped; nil if all are.
    package let overflowUser: UInt32?
    /// The same for groups.
    package let overflowGroup: UInt32?

    /// All users are mapped.
    package static let whole = UserNamespace(overflowUser: nil, overflowGroup: nil)

    /// That of this process.
    ///
    /// If a file of /proc cannot be read, nothing says that all are mapped.
    package static var own: UserNamespace {
        UserNamespace(
            overflowUser: overflow("/proc/self/uid_map", "/proc/sys/kernel/overflowuid"),
            overflowGroup: overflow("/proc/self/gid_map", "/proc/sys/kernel/overflowgid")
        )
    }

    private static func overflow(_ map: String, _ number: String) -> UInt32? {
        if let text = text(of: map), isWhole(map: text) { return nil }
        // The kernel's default.
        return text(of: number).flatMap { UInt32($0.prefix { $0 != "\n" }) } ?? 65_534
    }

    /// Whether a map has all numbers: one line for each range, with its length at the end.
    ///
    /// The last number, 4294967295, means nobody, and is never mapped.
    package static func isWhole(map: String) -> Bool {
        let counts = map.split(separator: "\n").map { line in
            line.split(separator: " ").last.flatMap { UInt64($0) } ?? 0
        }
        return counts.reduce(0, +) >= UInt64(UInt32.max)
    }

    /// A map has at most 340 lines of 33 bytes.
    private static func text(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) { room in
            let count = read(descriptor, room.baseAddress, room.count)
            return count < 0 ? nil : String(decoding: room.prefix(count), as: UTF8.self)
        }
    }
}
