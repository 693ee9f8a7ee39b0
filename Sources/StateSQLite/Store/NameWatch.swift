#if !canImport(Darwin)

import CLinux
import StatePlatform
import StateEngine
import Synchronization

/// Notices that names in directories were removed or given to other files, and that a path no longer
/// leads to its directory, with inotify(7).
///
/// The kernel queues an event before unlink(2) and rename(2) return. Changes without events, such
/// as a file system that is mounted over the directory, are noticed by ``StoreFiles/finding``.
final class NameWatch: Sendable {
    private static let names = UInt32(IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
    private static let itself = UInt32(IN_DELETE_SELF | IN_MOVE_SELF)
    /// A user has 128 instances by default, and other programs need some; so a process with many
    /// stores is limited.
    private static let limit = 8
    private static let count = Atomic(0)
    private let queue: Int32

    /// Nil if the limit is reached, the system has no watch left, or a directory of a path cannot be
    /// read.
    init?(_ directories: [String]) {
        let isAllowed = NameWatch.count.add(1, ordering: .relaxed).newValue <= NameWatch.limit
        queue = isAllowed ? inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)) : -1
        // From here on `deinit` is called, even if this fails.
        guard queue >= 0 else { return nil }
        for directory in directories {
            guard watch(directory, NameWatch.names | NameWatch.itself), watchPath(of: directory)
            else { return nil }
        }
    }

    /// Watches the directories that lead to `directory`, and the links among them.
    private func watchPath(of directory: String) -> Bool {
        var place = absolutePath(directory)
        while let slash = place.lastIndex(of: "/"), place != "/" {
            let parent = slash == place.startIndex ? "/" : String(place[..<slash])
            if isLink(place), !watch(parent, NameWatch.names) { return false }
            guard watch(parent, NameWatch.itself) else { return false }
            place = parent
        }
        return true
    }

    private func watch(_ directory: String, _ events: UInt32) -> Bool {
        // A directory may be reached twice.
        let events = events | UInt32(IN_ONLYDIR) | UInt32(IN_MASK_ADD)
        return inotify_add_watch(queue, directory, events) >= 0
    }

    private func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    deinit {
        if queue >= 0 { close(queue) }
        NameWatch.count.subtract(1, ordering: .relaxed)
    }

    /// Whether any names have changed since the last call.
    var haveChanged: Bool {
        var byteCount: Int32 = 0
        guard clinux_waiting_byte_count(queue, &byteCount) == 0 else { return true }
        guard byteCount > 0 else { return false }
        var events = [UInt8](repeating: 0, count: 4_096)
        while read(queue, &events, events.count) > 0 {}
        return true
    }
}

#else

/// Would notice that names in directories were removed or given to other files, as on Linux with
/// inotify(7).
///
/// Never made on Darwin: then the files are compared after each commit.
struct NameWatch: Sendable {
    init?(_ directories: [String]) { return nil }

    var haveChanged: Bool { true }
}

#endif
