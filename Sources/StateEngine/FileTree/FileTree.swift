import CLinux
import StatePlatform
import Synchronization

/// The directory of a store: everything in it is reached from one descriptor, and nothing outside
/// it can be.
final class FileTree: Sendable {
    /// An open directory; closed with its last use.
    struct Directory: ~Copyable {
        let descriptor: Int32
        let path: FilePath

        deinit { close(descriptor) }

        /// Makes changes to the directory durable.
        func sync() throws(FileFailure) {
            guard clinux_sync(descriptor) == 0 else { throw FileFailure("fsync", path) }
        }
    }

    /// Its absolute path.
    let location: String
    let root: Directory
    /// Whether each directory in it must belong to root or this process's user, and be writable for
    /// nobody else.
    private let isPrivate: Bool
    /// What new files look like, and how files are read.
    let form: FileForm
    /// Prefixes of the names of temporary files: those of any process, and that of this one, which
    /// is unique.
    private let temporaryPrefixes: [[UInt8]]
    private let temporaryPrefix: [UInt8]
    private let temporaryCount = Atomic(0)

    /// Opens a directory by its path, following links; the caller decides what it may be used for.
    convenience init(_ location: String) throws(StateError) {
        guard let resolved = realpath(location, nil) else {
            throw StateError(.storage, "\(location) cannot be opened: \(lastSystemError())")
        }
        defer { free(resolved) }
        let opened = StatePlatform.open(resolved, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else {
            throw StateError(.storage, "\(location) cannot be opened: \(lastSystemError())")
        }
        self.init(
            Directory(descriptor: opened, path: .root),
            at: String(cString: resolved),
            isPrivate: false,
            owners: [],
            form: FileForm()
        )
    }

    /// Opens a directory by a path that nobody else can change; see ``TrustedPath``.
    ///
    /// - Parameters:
    ///   - location: Its absolute path.
    ///   - isShared: Whether others may own and write to it and the directories in it.
    ///   - owners: The owners of temporary files that may be removed; new ones belong to the first.
    ///   - form: What new files look like, and how files are read.
    /// - Throws: as ``TrustedPath/open(_:isShared:)``.
    convenience init(
        trusted location: String,
        isShared: Bool,
        owners: [String] = [],
        form: FileForm = FileForm()
    ) throws(StateError) {
        self.init(
            try TrustedPath.open(location, isShared: isShared),
            at: TrustedPath.path(location),
            isPrivate: !isShared,
            owners: owners,
            form: form
        )
    }

    /// Without owners, temporary files belong to the directory itself; a copy of the directory is
    /// another.
    private init(
        _ root: consuming Directory,
        at location: String,
        isPrivate: Bool,
        owners: [String],
        form: FileForm
    ) {
        var status = stat()
        fstat(root.descriptor, &status)
        let owners = owners.isEmpty ? [String(status.st_ino, radix: 36)] : owners
        temporaryPrefixes = owners.map { Array(".stated-\($0)-".utf8) }
        temporaryPrefix =
            temporaryPrefixes[0] + Array(String(UInt64.random(in: 0...UInt64.max), radix: 36).utf8)
        self.root = root
        self.location = location
        self.isPrivate = isPrivate
        self.form = form
    }

    /// Makes everything durable that was written to the file system.
    func syncAll() { clinux_sync_file_system(root.descriptor) }

    /// A name that does not exist in the directory.
    func temporaryName() -> [UInt8] {
        let number = temporaryCount.add(1, ordering: .relaxed).newValue
        return temporaryPrefix + Array("-\(number)".utf8)
    }

    /// Whether a name is that of a temporary file that an earlier process left behind; other names
    /// that begin with `.stated-` are not.
    func isTemporary(_ name: [UInt8]) -> Bool {
        guard let prefix = temporaryPrefixes.first(where: { name.starts(with: $0) }) else {
            return false
        }
        let parts = name.dropFirst(prefix.count)
            .split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return false }
        return UInt64(String(decoding: parts[0], as: UTF8.self), radix: 36) != nil
            && Int(String(decoding: parts[1], as: UTF8.self)) != nil
    }

    /// Opens a directory of the store.
    ///
    /// - Complexity: one system call if others may write; otherwise three for each component of the
    ///   path.
    func directory(_ path: FilePath) throws(FileFailure) -> Directory {
        guard isPrivate else { return try FileTree.open(path, in: root, as: path) }
        var here = try FileTree.open(.root, in: root, as: .root)
        try FileTree.check(here)
        for name in path.names {
            here = try FileTree.open(FilePath(name), in: here, as: here.path.appending(name))
            try FileTree.check(here)
        }
        return here
    }

    private static func open(
        _ path: FilePath,
        in directory: borrowing Directory,
        as shown: FilePath
    ) throws(FileFailure) -> Directory {
        let descriptor = directory.descriptor
        while true {
            let opened = path.withCString {
                clinux_open_beneath(descriptor, $0, O_RDONLY | O_DIRECTORY)
            }
            if opened >= 0 { return Directory(descriptor: opened, path: shown) }
            guard errno == EINTR else { throw FileFailure("openat2", shown) }
        }
    }

    /// Refuses a directory that others may change.
    static func check(_ directory: borrowing Directory) throws(FileFailure) {
        let status = try FileStatus(of: directory.descriptor, directory.path)
        guard status.isTrusted else { throw FileFailure(untrusted: directory.path, status) }
    }

    /// The status of what is at `path`, without following links; nil if there is nothing, or no
    /// directory for it.
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

    /// The nearest existing directory to `path`, itself included, and the part of the path that is
    /// not a directory.
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

    /// Creates `path` and the missing directories above it, with the mode of their parents, and
    /// what ``form`` says.
    ///
    /// - Returns: The directories that it created, and their parents.
    func makeDirectories(_ path: FilePath) throws(FileFailure) -> [FilePath] {
        var touched: [FilePath] = []
        for step in ([path] + path.ancestors).reversed() where !step.isRoot {
            let parent = try directory(step.parent)
            var inherited = stat()
            fstat(parent.descriptor, &inherited)
            // A sticky directory protects the files of each user from the others.
            let mode = inherited.st_mode & 0o1777
            let code = FilePath.withCString(step.name) { mkdirat(parent.descriptor, $0, mode) }
            if code == 0 {
                try giveForm(to: step, in: parent)
                touched += [step.parent, step]
            } else if errno != EEXIST {
                throw FileFailure("mkdirat", step)
            }
        }
        return touched
    }

    /// Gives a new directory owner, group and mode, regardless of the umask.
    ///
    /// Others may already have put something else in its place, if they may write to the parent:
    /// a link is an error, and a directory that is not this process's stays as it is.
    private func giveForm(
        to path: FilePath,
        in parent: borrowing Directory
    ) throws(FileFailure) {
        guard form.mode != nil || form.uid != nil || form.gid != nil else { return }
        let made = try FileTree.open(FilePath(path.name), in: parent, as: path)
        let status = try FileStatus(of: made.descriptor, path)
        guard status.uid == geteuid() else { return }
        if form.readers != nil { try FileTree.removeLists(of: made.descriptor, path) }
        let look = form.directory(in: isPrivate, like: status)
        // Order matters: changing the owner may clear bits of the mode.
        if look.uid != status.uid || look.gid != status.gid {
            guard fchown(made.descriptor, look.uid, look.gid) == 0 else {
                throw FileFailure("fchown", path)
            }
        }
        guard fchmod(made.descriptor, look.mode) == 0 else { throw FileFailure("fchmod", path) }
    }

    /// Calls `body` with each name in a directory except `.` and `..`, and whether it is a
    /// directory.
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
                case Int(DT_DIR): true
                case Int(DT_UNKNOWN):
                    try FileTree.status(name, in: opened)?.isDirectory ?? false
                default: false
                }
            try body(name, isDirectory)
        }
    }
}
