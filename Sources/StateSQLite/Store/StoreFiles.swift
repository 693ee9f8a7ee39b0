import CLinux
import Glibc
import StateEngine
import Synchronization

/// The files of an open store, by what they were when it was opened.
///
/// Whoever removes or replaces them leaves the process with files that have no name: it would go on and acknowledge commits that
/// no start finds.
struct StoreFiles: Sendable {
    private struct File {
        let path: String
        let number: Number?
    }

    private struct Number: Hashable {
        let device: UInt64
        let inode: UInt64

        /// Nil if nothing has this name; then the reason is in `errno`.
        init?(of path: String) {
            var (device, inode): (UInt64, UInt64) = (0, 0)
            // Not by stat(2): a commit after it took half as long again.
            guard clinux_file_number(path, &device, &inode) == 0 else { return nil }
            (self.device, self.inode) = (device, inode)
        }
    }

    private let files: [File]
    private let names: NameWatch?

    /// Notes the files that are there now: the database, its log, and its stamp.
    init(_ location: StoreLocation) {
        // First, so that nothing happens in between unnoticed.
        names = NameWatch(location.directory)
        files = [location.log, location.database, location.stamp].map {
            File(path: $0, number: Number(of: $0))
        }
    }

    /// Which file is not in its place any more, in a sentence; nil if all are.
    ///
    /// - Complexity: one statx(2) for each, 1 µs.
    var finding: String? { finding(among: files[...]) }

    /// The same of the log and the database alone, which have what was committed; asked after each commit, by one thread.
    ///
    /// - Complexity: one ioctl(2), 0.25 µs, if no name in the directory has changed since it was asked last.
    var commitFinding: String? {
        if let names, !names.haveChanged { return nil }
        return finding(among: files[..<2])
    }

    private func finding(among files: ArraySlice<File>) -> String? {
        for file in files {
            guard let number = Number(of: file.path) else {
                return
                    "\(file.path) is gone (\(lastSystemError())): what is written would be lost; put it back, or "
                    + "restart with the files that are to count"
            }
            guard number == file.number else {
                return
                    "\(file.path) was replaced by another file: what is written would be lost; put the one back that "
                    + "was there, or restart with the files that are to count"
            }
        }
        return nil
    }
}

/// Which files are asked for after a commit.
struct FileCheck {
    let files: StoreFiles
    private var commitCount = 0
    /// When all of them were asked for last, on the monotonic clock in nanoseconds.
    private var checkedAt: Int64 = 0

    init(_ files: StoreFiles) { self.files = files }

    /// Which file is not in its place any more, in a sentence; nil if all are.
    mutating func findingAfterCommit() -> String? {
        commitCount &+= 1
        let now = clinux_monotonic_nanoseconds()
        // Without the stamp less would be noticed, and nothing lost.
        guard commitCount % 64 == 0 || now - checkedAt > 1_000_000_000 else {
            return files.commitFinding
        }
        checkedAt = now
        return files.finding
    }
}

/// Notices that names in a directory were removed or given to other files, by inotify(7).
///
/// The kernel queues an event before unlink(2) and rename(2) return. What it says nothing of, such as another directory in the place
/// of one above, ``StoreFiles/finding`` sees.
private final class NameWatch: Sendable {
    private static let events = UInt32(
        IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    )
    /// A user has 128 instances by default, and other programs need some: a process with many stores takes no more of them.
    private static let limit = 8
    private static let count = Atomic(0)
    private let queue: Int32

    /// Nil if there are too many of them, or the system has no watch left.
    init?(_ directory: String) {
        let isAllowed = NameWatch.count.add(1, ordering: .relaxed).newValue <= NameWatch.limit
        queue = isAllowed ? inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)) : -1
        // From here on `deinit` is called, also if this fails.
        guard queue >= 0, inotify_add_watch(queue, directory, NameWatch.events) >= 0 else {
            return nil
        }
    }

    deinit {
        if queue >= 0 { close(queue) }
        NameWatch.count.subtract(1, ordering: .relaxed)
    }

    /// Whether any have since this was asked last.
    var haveChanged: Bool {
        var byteCount: Int32 = 0
        guard clinux_waiting_byte_count(queue, &byteCount) == 0 else { return true }
        guard byteCount > 0 else { return false }
        var events = [UInt8](repeating: 0, count: 4_096)
        while read(queue, &events, events.count) > 0 {}
        return true
    }
}
