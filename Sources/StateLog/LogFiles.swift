import CLinux
import StateEngine
import StateModel
import StatePlatform

/// The calls by which a log uses its directory: all of its files go through this type, so that a test
/// can decide what a disk keeps, loses and refuses.
///
/// Files may be made, removed and read by one thread while another writes.
package protocol LogFiles: AnyObject, Sendable {
    /// The names in the directory, in any order.
    func names() throws(LogFileFailure) -> [String]
    /// Opens a file that is there, for reading and writing.
    func open(_ name: String) throws(LogFileFailure) -> any LogFile
    /// Makes a file, which must not be there.
    func create(_ name: String) throws(LogFileFailure) -> any LogFile
    func rename(_ name: String, to new: String) throws(LogFileFailure)
    func remove(_ name: String) throws(LogFileFailure)
    /// Makes what was created, renamed and removed durable.
    func syncNames() throws(LogFileFailure)
    /// Whether a block that is written again takes room: nothing is prepared or used again there.
    var isCopyOnWrite: Bool { get }
    /// How many bytes the file system has left for this user, as far as it says; nil if it does not.
    func availableByteCount() -> Int64?
    /// Whether the file system gives so many bytes, which only trying shows where a quota or a thin
    /// volume refuses what it says that there is.
    func hasRoom(for byteCount: Int64) -> Bool
    /// Which name no longer leads to its file, as a sentence; nil if all do.
    func finding(among files: [(name: String, file: any LogFile)]) -> String?
}

/// A file of a log.
package protocol LogFile: AnyObject, Sendable {
    func byteCount() throws(LogFileFailure) -> Int
    /// Reads from `offset` on, and returns how many bytes there were.
    func read(
        _ target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) throws(LogFileFailure) -> Int
    /// Writes all of `bytes`; if this throws, any part of them may be there.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileFailure)
    /// Makes the file as long: what is new are zeros that may take no room yet.
    func setByteCount(_ byteCount: Int) throws(LogFileFailure)
    /// Makes what was written durable; if this throws, nobody can say what is.
    func sync() throws(LogFileFailure)
}

/// A call that failed.
package struct LogFileFailure: Error, Equatable, Sendable {
    /// What was tried, as in "write".
    package let call: StaticString
    package let name: String
    package let code: Int32

    package init(_ call: StaticString, _ name: String, _ code: Int32) {
        (self.call, self.name, self.code) = (call, name, code)
    }

    package static func == (one: LogFileFailure, other: LogFileFailure) -> Bool {
        one.call.description == other.call.description && one.name == other.name
            && one.code == other.code
    }

    package var isNoSpace: Bool { code == ENOSPC || code == EDQUOT }

    package var sentence: String { "\(call) of \(name): \(String(cString: strerror(code)))" }
}

/// A directory on a disk.
package final class LogDirectory: LogFiles {
    private let path: String
    private let descriptor: Int32
    package let isCopyOnWrite: Bool
    /// How its files are opened.
    private let access: Int32

    /// Opens a directory, and makes it if it is missing; its parent must be there.
    package convenience init(_ path: String) throws(LogFileFailure) {
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw LogFileFailure("mkdir", path, errno) }
        try self.init(path, O_RDWR)
    }

    /// Opens a directory that is there, and its files for reading only.
    package convenience init(reading path: String) throws(LogFileFailure) {
        // Nobody waits for the other end of a FIFO.
        try self.init(path, O_RDONLY | O_NONBLOCK)
    }

    private init(_ path: String, _ access: Int32) throws(LogFileFailure) {
        (self.path, self.access) = (path, access)
        descriptor = StatePlatform.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw LogFileFailure("open", path, errno) }
        // The magic numbers of statfs(2) of btrfs, zfs and bcachefs. XFS writes in place what no other
        // file shares.
        let types: [Int64] = [0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E]
        isCopyOnWrite = types.contains(clinux_file_system_type(descriptor))
    }

    deinit { close(descriptor) }

    package func names() throws(LogFileFailure) -> [String] {
        guard let stream = opendir(path) else { throw LogFileFailure("opendir", path, errno) }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw LogFileFailure("readdir", path, errno) }
        return names
    }

    package func open(_ name: String) throws(LogFileFailure) -> any LogFile {
        try open(name, access | O_NOFOLLOW)
    }

    package func create(_ name: String) throws(LogFileFailure) -> any LogFile {
        try open(name, O_RDWR | O_NOFOLLOW | O_CREAT | O_EXCL)
    }

    private func open(_ name: String, _ flags: Int32) throws(LogFileFailure) -> any LogFile {
        let opened = openat(descriptor, name, flags | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw LogFileFailure("open", name, errno) }
        return OpenFile(name, opened)
    }

    package func rename(_ name: String, to new: String) throws(LogFileFailure) {
        guard renameat(descriptor, name, descriptor, new) == 0 else {
            throw LogFileFailure("rename", name, errno)
        }
    }

    package func remove(_ name: String) throws(LogFileFailure) {
        guard unlinkat(descriptor, name, 0) == 0 else {
            throw LogFileFailure("unlink", name, errno)
        }
    }

    package func syncNames() throws(LogFileFailure) {
        guard clinux_sync(descriptor) == 0 else { throw LogFileFailure("fsync", path, errno) }
    }

    package func availableByteCount() -> Int64? { LogDirectory.availableByteCount(of: path) }

    /// How many bytes the file system of a directory has left for this user; nil with errno if it cannot
    /// be asked.
    package static func availableByteCount(of path: String) -> Int64? {
        var room = statvfs()
        guard statvfs(path, &room) == 0 else { return nil }
        // Some file systems say that they have no limit.
        let (count, isTooMany) = UInt64(room.f_bavail)
            .multipliedReportingOverflow(by: UInt64(room.f_frsize))
        return isTooMany ? .max : Int64(clamping: count)
    }

    package func hasRoom(for byteCount: Int64) -> Bool {
        // A start removes what a crash leaves of it.
        let name = "room" + LogScan.unfinishedSuffix
        let opened = openat(descriptor, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard opened >= 0 else { return false }
        defer {
            close(opened)
            unlinkat(descriptor, name, 0)
        }
        return clinux_allocate(opened, off_t(byteCount)) == 0
    }

    package func finding(among files: [(name: String, file: any LogFile)]) -> String? {
        guard let place = FileNumber(at: path, followingLinks: true) else {
            return LostPlace.missing(path)
        }
        guard place == FileNumber(of: descriptor) else {
            return LostPlace.replaced(path, by: "directory")
        }
        for case (let name, let file as OpenFile) in files {
            let path = "\(path)/\(name)"
            guard let found = FileNumber(at: path) else { return LostPlace.missing(path) }
            guard found == FileNumber(of: file.descriptor) else {
                return LostPlace.replaced(path, by: "file")
            }
        }
        return nil
    }

    /// What a file is known by, whatever its name is.
    private struct FileNumber: Equatable {
        let device: UInt64
        let inode: UInt64

        /// Nil if the name does not exist; the reason is in `errno`.
        init?(at path: String, followingLinks follows: Bool = false) {
            var status = stat()
            guard (follows ? stat(path, &status) : lstat(path, &status)) == 0 else { return nil }
            self.init(status)
        }

        init?(of descriptor: Int32) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { return nil }
            self.init(status)
        }

        private init(_ status: stat) {
            (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
        }
    }

    private final class OpenFile: LogFile {
        private let name: String
        fileprivate let descriptor: Int32

        init(_ name: String, _ descriptor: Int32) {
            (self.name, self.descriptor) = (name, descriptor)
        }

        deinit { close(descriptor) }

        func byteCount() throws(LogFileFailure) -> Int {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                throw LogFileFailure("stat", name, errno)
            }
            return Int(status.st_size)
        }

        func read(
            _ target: UnsafeMutableRawBufferPointer,
            at offset: Int
        ) throws(LogFileFailure) -> Int {
            var done = 0
            while done < target.count, let start = target.baseAddress {
                let count = pread(
                    descriptor,
                    start + done,
                    target.count - done,
                    off_t(offset + done)
                )
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw LogFileFailure("read", name, errno) }
                if count == 0 { break }
                done += count
            }
            return done
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileFailure) {
            var done = 0
            while done < bytes.count, let start = bytes.baseAddress {
                let count = pwrite(
                    descriptor,
                    start + done,
                    bytes.count - done,
                    off_t(offset + done)
                )
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw LogFileFailure("write", name, errno) }
                done += count
            }
        }

        func setByteCount(_ byteCount: Int) throws(LogFileFailure) {
            guard ftruncate(descriptor, off_t(byteCount)) == 0 else {
                throw LogFileFailure("truncate", name, errno)
            }
        }

        func sync() throws(LogFileFailure) {
            guard clinux_sync_data(descriptor) == 0 else {
                throw LogFileFailure("sync", name, errno)
            }
        }
    }
}
