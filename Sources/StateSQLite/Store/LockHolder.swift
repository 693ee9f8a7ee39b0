import StatePlatform
import StateSystem

/// Finds the other holders of a lock on a store: a person's `sqlite3` shell, a backup.
///
/// Uses /proc/locks, not F_GETLK: that needs a separate descriptor, and closing it would drop the
/// locks that SQLite holds on the file for this process.
/// https://man7.org/linux/man-pages/man5/proc_locks.5.html
enum LockHolder {
    /// The bytes of the `-shm` file that a writer locks. https://www.sqlite.org/walformat.html
    /// ("WAL Locks")
    static let writerBytes: ClosedRange<Int> = 120...120
    /// The bytes that readers lock.
    static let readerBytes: ClosedRange<Int> = 123...127

    /// Names the processes other than this one that hold locks on `bytes` of the file at `path`.
    static func description(of path: String, bytes: ClosedRange<Int>) -> String {
        var status = stat()
        guard stat(path, &status) == 0 else { return "another process" }
        let own = getpid()
        var pids: [Int32] = []
        for line in FileLocks.text(of: "/proc/locks").split(separator: "\n") {
            guard let lock = parse(line), lock.inode == UInt64(status.st_ino), lock.pid != own,
                lock.bytes.overlaps(bytes), !pids.contains(lock.pid)
            else { continue }
            pids.append(lock.pid)
        }
        guard !pids.isEmpty else { return "another process" }
        return pids.map(name(of:)).joined(separator: ", ")
    }

    /// Parses `1: POSIX ADVISORY READ 8742 fe:00:1234 123 127`; nil for anything else, also for a
    /// waiting lock.
    private static func parse(
        _ line: Substring
    ) -> (pid: Int32, inode: UInt64, bytes: ClosedRange<Int>)? {
        let fields = line.split(separator: " ")
        guard fields.count == 8, fields[1] == "POSIX", let pid = Int32(fields[4]), pid > 0,
            let inode = fields[5].split(separator: ":").last.flatMap({ UInt64($0) }),
            let first = Int(fields[6])
        else { return nil }
        let last = Int(fields[7]) ?? .max
        return last < first ? nil : (pid, inode, first...last)
    }

    private static func name(of pid: Int32) -> String {
        let command = FileLocks.text(of: "/proc/\(pid)/comm").split(separator: "\n").first
        return "process \(pid)" + (command.map { " (\($0))" } ?? "")
    }
}
