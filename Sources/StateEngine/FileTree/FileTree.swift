import CLinux
import StatePlatform
import StateSystem
import Synchronization

/// The directory of a store: everything in it is reached from one descriptor, and nothing outside
/// it can be.
final class FileTree: Sendable {
    /// An open directory; closed with its last use.
    final class Directory: Sendable {
        let descriptor: Int32
        let path: FilePath

        init(descriptor: Int32, path: FilePath) {
            self.descriptor = descriptor
            self.path = path
        }

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
    /// Prefixes of the names of temporary files: those of any process, and that of this object,
    /// which is unique.
    private let temporaryPrefixes: [[UInt8]]
    private let temporaryPrefix: [UInt8]
    private let temporaryCount = Atomic(0)
    /// Whether directories stay open after their use; see ``walk()``.
    private let isWalk: Bool
    /// The directories on the way to the one that was opened last, the root first.
    private let way = StateLock<[Directory]>([])
    /// At most so many directories of a way stay open, besides its last: they come out of the
    /// descriptors that clients leave.
    private static let wayLength = 32

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
        _ root: Directory,
        at location: String,
        isPrivate: Bool,
        owners: [String],
        form: FileForm
    ) {
        var status = stat()
        fstat(root.descriptor, &status)
        let owners = owners.isEmpty ? [String(status.st_ino, radix: 36)] : owners
        temporaryPrefixes = owners.map { Array(".stated-\($0)-".utf8) }
        temporaryPrefix = FileTree.ownPrefix(of: temporaryPrefixes)
        self.root = root
        self.location = location
        self.isPrivate = isPrivate
        self.form = form
        isWalk = false
    }

    private init(walking tree: FileTree) {
        (root, location, isPrivate, form) = (tree.root, tree.location, tree.isPrivate, tree.form)
        temporaryPrefixes = tree.temporaryPrefixes
        temporaryPrefix = FileTree.ownPrefix(of: tree.temporaryPrefixes)
        isWalk = true
    }

    /// The same directory for a piece of work with many paths: it keeps the directories on the way
    /// to the last one open, so that paths in order open each directory once.
    ///
    /// For one piece of work only. A directory that somebody else has moved or replaced meanwhile
    /// is not noticed.
    func walk() -> FileTree { FileTree(walking: self) }

    private static func ownPrefix(of prefixes: [[UInt8]]) -> [UInt8] {
        prefixes[0] + Array(String(UInt64.random(in: 0...UInt64.max), radix: 36).utf8)
    }

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
    ///   path. In a ``walk()`` three for each component that is not on the way to the last one.
    func directory(_ path: FilePath) throws(FileFailure) -> Directory {
        if isWalk {
            return try way.withLock { (way) throws(FileFailure) in try open(path, along: &way) }
        }
        guard isPrivate else { return try FileTree.open(path, in: root, as: path) }
        var here = try step(nil, from: root)
        for name in path.names { here = try step(name, from: here) }
        return here
    }

    /// Opens a directory from the deepest one that is open on the way to it.
    private func open(
        _ path: FilePath,
        along way: inout [Directory]
    ) throws(FileFailure) -> Directory {
        if way.isEmpty { way = [try step(nil, from: root)] }
        let last = way.lastIndex { path == $0.path || path.isBelow($0.path) } ?? 0
        if way[last].path == path { return way[last] }
        way.removeSubrange((last + 1)...)
        var here = way[last]
        for name in path.names.dropFirst(here.path.depth) {
            here = try step(name, from: here)
            if way.count > FileTree.wayLength { way.removeLast() }
            way.append(here)
        }
        return here
    }

    /// Opens a directory in another one, or the root if `name` is nil.
    private func step(_ name: [UInt8]?, from here: Directory) throws(FileFailure) -> Directory {
        let path = name.map { here.path.appending($0) } ?? .root
        let next = try FileTree.open(name.map { FilePath($0) } ?? .root, in: here, as: path)
        if isPrivate { try FileTree.check(next) }
        return next
    }

    /// Forgets a directory that was removed, so that a new one at its path is opened.
    func forget(_ path: FilePath) {
        way.withLock { $0.removeAll { $0.path == path || $0.path.isBelow(path) } }
    }

    private static func open(
        _ path: FilePath,
        in directory: Directory,
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
    static func check(_ directory: Directory) throws(FileFailure) {
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
        in directory: Directory
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
        // Mostly it is there, and in a walk it is open.
        do throws(FileFailure) {
            _ = try directory(path)
            return (path, nil)
        } catch  where [ENOENT, ENOTDIR, ELOOP].contains(error.code) {}
        var nearest = FilePath.root
        for name in path.names {
            let next = nearest.appending(name)
            do throws(FileFailure) { _ = try directory(next) } catch  where error.code == ENOENT {
                return (nearest, nil)
            } catch  where error.code == ENOTDIR || error.code == ELOOP {
                return (nearest, next)
            }
            nearest = next
        }
        return (nearest, nil)
    }

    /// Creates `path` and the missing directories above it, with the mode of their parents, and
    /// what ``form`` says.
    ///
    /// - Returns: The directories that it created, and their parents.
    func makeDirectories(_ path: FilePath) throws(FileFailure) -> [FilePath] {
        do throws(FileFailure) {
            _ = try directory(path)
            return []
        } catch  where error.code == ENOENT {}
        var touched: [FilePath] = []
        var above = FilePath.root
        for name in path.names {
            let step = above.appending(name)
            do throws(FileFailure) { _ = try directory(step) } catch  where error.code == ENOENT {
                try make(step, in: directory(above))
                touched += [above, step]
            }
            above = step
        }
        return touched
    }

    private func make(_ path: FilePath, in parent: Directory) throws(FileFailure) {
        let inherited = try FileStatus(of: parent.descriptor, parent.path)
        // A sticky directory protects the files of each user from the others.
        let mode = inherited.mode & 0o1777
        let code = FilePath.withCString(path.name) { mkdirat(parent.descriptor, $0, mode) }
        if code == 0 { return try giveForm(to: path, in: parent) }
        guard errno == EEXIST else { throw FileFailure("mkdirat", path) }
    }

    /// Gives a new directory owner, group and mode, regardless of the umask.
    ///
    /// Others may already have put something else in its place, if they may write to the parent:
    /// a link is an error, and a directory that is not this process's stays as it is.
    private func giveForm(
        to path: FilePath,
        in parent: Directory
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
        let names = try Names(directory(path))
        while let (name, isDirectory) = try names.next() { try body(name, isDirectory) }
    }

    /// The names in a directory except `.` and `..`, one after the other.
    final class Names {
        #if canImport(Darwin)
        private typealias Stream = UnsafeMutablePointer<DIR>
        #else
        private typealias Stream = OpaquePointer
        #endif

        let directory: Directory
        private let stream: Stream

        /// Begins with the first name, also if somebody has read the open directory before.
        init(_ directory: Directory) throws(FileFailure) {
            let copy = fcntl(directory.descriptor, F_DUPFD_CLOEXEC, 0)
            guard copy >= 0, let stream = fdopendir(copy) else {
                let failure = FileFailure("fdopendir", directory.path)
                if copy >= 0 { close(copy) }
                throw failure
            }
            (self.directory, self.stream) = (directory, stream)
            // The copy shares the place up to which it was read, and a walk keeps it open.
            rewinddir(stream)
        }

        deinit { closedir(stream) }

        /// The next name, and whether it is a directory; nil at the end.
        func next() throws(FileFailure) -> (name: [UInt8], isDirectory: Bool)? {
            while true {
                errno = 0
                guard let entry = readdir(stream) else {
                    if errno != 0 { throw FileFailure("readdir", directory.path) }
                    return nil
                }
                let name = withUnsafeBytes(of: entry.pointee.d_name) {
                    Array($0.prefix { $0 != 0 })
                }
                if name == Array(".".utf8) || name == Array("..".utf8) { continue }
                return switch Int(entry.pointee.d_type) {
                case Int(DT_DIR): (name, true)
                case Int(DT_UNKNOWN):
                    (name, try FileTree.status(name, in: directory)?.isDirectory ?? false)
                default: (name, false)
                }
            }
        }
    }
}
