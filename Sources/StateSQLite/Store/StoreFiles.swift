import CLinux
import Glibc
import StateEngine
import Synchronization

/// The files of an open store, by their identities when it was opened.
///
/// If somebody removes or replaces them, the process keeps files without names: it would continue
/// to acknowledge commits that no start finds.
struct StoreFiles: Sendable {
    private struct File {
        let path: String
        let number: Number?
    }

    private struct Number: Hashable {
        let device: UInt64
        let inode: UInt64

        /// Nil if the name does not exist; the reason is in `errno`.
        init?(of path: String) {
            var (device, inode): (UInt64, UInt64) = (0, 0)
            // Not by stat(2), with which a commit took half as long again.
            guard clinux_file_number(path, &device, &inode) == 0 else { return nil }
            (self.device, self.inode) = (device, inode)
        }
    }

    private let files: [File]
    private let names: NameWatch?

    /// Records the present files: the database, its log, and its stamp.
    init(_ location: StoreLocation) {
        // First, so that no change goes unnoticed.
        names = NameWatch(location.directory)
        files = [location.log, location.database, location.stamp].map {
            File(path: $0, number: Number(of: $0))
        }
    }

    /// Which file is missing or replaced, as a sentence; nil if none is.
    ///
    /// - Complexity: One statx(2) for each, 1 µs.
    var finding: String? { finding(among: files[...]) }

    /// The same for the log and the database only, which contain the commits.
    ///
    /// Called after each commit, by one thread.
    ///
    /// - Complexity: One ioctl(2), 0.25 µs, if no name in the directory has changed since the last
    ///   call.
    var commitFinding: String? {
        if let names, !names.haveChanged { return nil }
        return finding(among: files[..<2])
    }

    private func finding(among files: ArraySlice<File>) -> String? {
        for file in files {
            guard let number = Number(of: file.path) else {
                return
                    "\(file.path) is missing (\(lastSystemError())): writes would be lost; "
                    + "put it back, or restart with the intended files"
            }
            guard number == file.number else {
                return
                    "\(file.path) was replaced by another file: writes would be lost; "
                    + "put the original back, or restart with the intended files"
            }
        }
        return nil
    }
}

/// Chooses which files to check after a commit.
struct FileCheck {
    let files: StoreFiles
    private var commitCount = 0
    /// The time of the last check of all files, on the monotonic clock in nanoseconds.
    private var checkedAt: Int64 = 0

    init(_ files: StoreFiles) { self.files = files }

    /// Which file is missing or replaced, as a sentence; nil if none is.
    mutating func findingAfterCommit() -> String? {
        commitCount &+= 1
        let now = clinux_monotonic_nanoseconds()
        // Without the stamp, less would be noticed, but nothing lost.
        guard commitCount % 64 == 0 || now - checkedAt > 1_000_000_000 else {
            return files.commitFinding
        }
        checkedAt = now
        return files.finding
    }
}

/// Notices that names in a directory were removed or given to other files, with inotify(7).
///
/// The kernel queues an event before unlink(2) and rename(2) return. Changes without events, such
/// as a replaced parent directory, are noticed by ``StoreFiles/finding``.
private final class NameWatch: Sendable {
    private static let events = UInt32(
        IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    )
    /// A user has 128 instances by default, and other programs need some; so a process with many
    /// stores is limited.
    private static let limit = 8
    private static let count = Atomic(0)
    private let queue: Int32

    /// Nil if the limit is reached, or the system has no watch left.
    init?(_ directory: String) {
        let isAllowed = NameWatch.count.add(1, ordering: .relaxed).newValue <= NameWatch.limit
        queue = isAllowed ? inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)) : -1
        // From here on `deinit` is called, even if this fails.
        guard queue >= 0, inotify_add_watch(queue, directory, NameWatch.events) >= 0 else {
            return nil
        }
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
