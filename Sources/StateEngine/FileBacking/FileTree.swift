import CLinux
import Glibc

/// The directory of a store: everything in it is reached from one descriptor, and nothing outside it can be.
final class FileTree: Sendable {
    /// An open directory; closed with its last use.
    struct Directory: ~Copyable {
        let descriptor: Int32
        let path: FilePath

        deinit { close(descriptor) }

        /// Makes what was done in the directory durable.
        func sync() throws(FileFailure) {
            guard fsync(descriptor) == 0 else { throw FileFailure("fsync", path) }
        }
    }

    /// Its absolute path.
    let location: String
    private let descriptor: Int32
    /// What the names of temporary files of this start begin with; a start never meets one of another.
    private let temporaryPrefix: [UInt8]

    static let temporaryMark = Array(".stated-".utf8)

    init(_ location: String) throws(StateError) {
        guard let resolved = realpath(location, nil) else {
            throw StateError(.storage, "\(location) cannot be opened: \(lastSystemError())")
        }
        self.location = String(cString: resolved)
        free(resolved)
        descriptor = open(self.location, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(location) cannot be opened: \(lastSystemError())")
        }
        temporaryPrefix =
            FileTree.temporaryMark
            + Array(String(UInt64.random(in: 0...UInt64.max), radix: 36).utf8)
    }

    deinit { close(descriptor) }

    /// Makes everything durable that was written to the file system.
    func syncAll() { clinux_sync_file_system(descriptor) }

    /// A name that nothing in the directory has.
    func temporaryName(_ number: Int) -> [UInt8] { temporaryPrefix + Array("-\(number)".utf8) }

    /// Opens a directory of the store.
    func directory(_ path: FilePath) throws(FileFailure) -> Directory {
        while true {
            let opened = path.withCString {
                clinux_open_beneath(descriptor, $0, O_RDONLY | O_DIRECTORY)
            }
            if opened >= 0 { return Directory(descriptor: opened, path: path) }
            guard errno == EINTR else { throw FileFailure("openat2", path) }
        }
    }

    /// What stands at `path`, which is not followed; nil where there is nothing, or no directory for it.
    func status(_ path: FilePath) throws(FileFailure) -> FileStatus? {
        do throws(FileFailure) {
            let parent = try directory(path.parent)
            return try FileTree.status(path.name, in: parent)
        } catch  where error.code == ENOENT || error.code == ENOTDIR {
            return nil
        }
    }

    static func status(
        _ name: [UInt8],
        in directory: borrowing Directory
    ) throws(FileFailure) -> FileStatus? {
        var found = stat()
        let code = FilePath.withCString(name) {
            fstatat(directory.descriptor, $0, &found, AT_SYMLINK_NOFOLLOW)
        }
        if code == 0 { return FileStatus(found) }
        if errno == ENOENT { return nil }
        throw FileFailure("fstatat", directory.path.appending(name))
    }

    /// The nearest directory to `path` that is there, itself included, and what of the way to it is no directory.
    func nearestDirectory(
        to path: FilePath
    ) throws(FileFailure) -> (directory: FilePath, obstacle: FilePath?) {
        var obstacle: FilePath?
        for candidate in [path] + path.ancestors {
            do throws(FileFailure) {
                _ = try directory(candidate)
                return (candidate, obstacle)
            } catch  where error.code == ENOENT {
                obstacle = nil
            } catch  where error.code == ENOTDIR || error.code == ELOOP {
                obstacle = candidate
            }
        }
        throw FileFailure("openat2", .root, ENOENT)
    }

    /// Makes the directories on the way to `path` and itself where they are absent, with the mode of those they are in.
    ///
    /// - Returns: Those that it made, and those that they were made in.
    func makeDirectories(_ path: FilePath) throws(FileFailure) -> [FilePath] {
        var touched: [FilePath] = []
        for step in ([path] + path.ancestors).reversed() where !step.isRoot {
            let parent = try directory(step.parent)
            var inherited = stat()
            fstat(parent.descriptor, &inherited)
            let mode = inherited.st_mode & 0o777
            let code = FilePath.withCString(step.name) { mkdirat(parent.descriptor, $0, mode) }
            if code == 0 {
                touched += [step.parent, step]
            } else if errno != EEXIST {
                throw FileFailure("mkdirat", step)
            }
        }
        return touched
    }

    /// Calls `body` with each name in a directory, `.` and `..` left out, and its kind where the directory tells.
    func forEachName(
        in path: FilePath,
        _ body: (_ name: [UInt8], _ isDirectory: Bool) throws(FileFailure) -> Void
    ) throws(FileFailure) {
        let opened = try directory(path)
        let copy = fcntl(opened.descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0, let stream = fdopendir(copy) else {
            let failure = FileFailure("fdopendir", path)
            if copy >= 0 { close(copy) }
            throw failure
        }
        defer { closedir(stream) }
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw FileFailure("readdir", path) }
                return
            }
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name == Array(".".utf8) || name == Array("..".utf8) { continue }
            let isDirectory =
                switch Int(entry.pointee.d_type) {
                case DT_DIR: true
                case DT_UNKNOWN:
                    try FileTree.status(name, in: opened)?.isDirectory ?? false
                default: false
                }
            try body(name, isDirectory)
        }
    }
}
