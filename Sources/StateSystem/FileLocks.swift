import CLinux
import StatePlatform

/// The holders of locks by flock(2), as listed in `/proc/locks`.
package enum FileLocks {
    /// The processes that hold a lock of an opened file or directory.
    ///
    /// Lines of proc_locks(5): `1: FLOCK  ADVISORY  WRITE 1234 fd:01:131074 0 EOF`, with the device
    /// in hexadecimal. Some file systems (Btrfs) show a different device there than stat(2): then
    /// only the inode counts.
    package static func holders(of descriptor: Int32) -> [Int32] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return [] }
        let (exact, similar) = holders(of: status)
        return exact.isEmpty ? similar : exact
    }

    /// The same for the file at `path`; empty if there is no file, and on file systems whose device
    /// stat(2) does not report.
    package static func holders(of path: String) -> [Int32] {
        var status = stat()
        return lstat(path, &status) == 0 ? holders(of: status).exact : []
    }

    private static func holders(of status: stat) -> (exact: [Int32], similar: [Int32]) {
        var exact: [Int32] = []
        var similar: [Int32] = []
        for line in text(of: "/proc/locks").split(separator: "\n") {
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
