import CLinux
import StatePlatform

/// The holders of locks by flock(2), as listed in `/proc/locks` and `/proc/PID/fdinfo`.
package enum FileLocks {
    /// The processes that hold a lock of an opened file or directory.
    ///
    /// Lines of proc_locks(5): `1: FLOCK  ADVISORY  WRITE 1234 fd:01:131074 0 EOF`, with the device
    /// in hexadecimal. Some file systems (Btrfs) show a different device there than stat(2): then
    /// only the inode counts.
    package static func holders(of descriptor: Int32) -> [Int32] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return [] }
        let (exact, similar) = holders(of: status, in: text(of: "/proc/locks"))
        return exact.isEmpty ? similar : exact
    }

    /// Whether a process has open what holds a lock of an opened file or directory.
    ///
    /// `/proc/locks` names the process that took a lock. It may have ended, and another may have its
    /// number now, while a child that it has left has the open file.
    ///
    /// Returns nil if this process may not know (proc_pid_fdinfo(5)): only root may ask about the
    /// processes of others.
    ///
    /// - Complexity: O(*n*) in the files that the process has open.
    package static func isHeld(_ descriptor: Int32, by pid: Int32) -> Bool? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        guard let directory = opendir("/proc/\(pid)/fdinfo") else {
            return errno == ENOENT ? false : nil
        }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard Int32(name) != nil else { continue }
            let (exact, similar) = holders(of: status, in: text(of: "/proc/\(pid)/fdinfo/\(name)"))
            if !exact.isEmpty || !similar.isEmpty { return true }
        }
        return false
    }

    /// The same for the file at `path`; empty if there is no file, and on file systems whose device
    /// stat(2) does not report.
    package static func holders(of path: String) -> [Int32] {
        var status = stat()
        guard lstat(path, &status) == 0 else { return [] }
        return holders(of: status, in: text(of: "/proc/locks")).exact
    }

    /// The holders by the lines of `/proc/locks`, or of a file below `/proc/PID/fdinfo`; those with
    /// the same device and inode, and those with the same inode.
    private static func holders(
        of status: stat,
        in text: String
    ) -> (exact: [Int32], similar: [Int32]) {
        var exact: [Int32] = []
        var similar: [Int32] = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard let start = words.firstIndex(of: "FLOCK"), words.count > start + 4,
                let pid = Int32(words[start + 3])
            else { continue }
            let place = words[start + 4].split(separator: ":")
            guard place.count == 3, UInt64(place[2]) == UInt64(status.st_ino) else { continue }
            similar.append(pid)
            if UInt32(place[0], radix: 16) == clinux_device_major(status.st_dev),
                UInt32(place[1], radix: 16) == clinux_device_minor(status.st_dev)
            {
                exact.append(pid)
            }
        }
        return (exact, similar)
    }

    /// The process that holds a lock of its open file (F_OFD_SETLK) on the file at `path`, as it has
    /// written into the file.
    ///
    /// - Returns: 0 if it has not written that; nil if nobody holds one, or the file cannot be
    ///   opened.
    package static func owner(of path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { StatePlatform.close(descriptor) }
        guard clinux_is_locked(descriptor) == 1 else { return nil }
        return processNumber(writtenIn: descriptor) ?? 0
    }

    /// The process number in the first line of an opened file; nil if there is none.
    package static func processNumber(writtenIn descriptor: Int32) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        let digits = bytes.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }
        return Int32(String(decoding: digits, as: UTF8.self))
    }

    /// The text of a file of /proc; empty if it cannot be read.
    package static func text(of path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { StatePlatform.close(file) }
        return String(decoding: NamedFile.contents(of: file) ?? [], as: UTF8.self)
    }
}
