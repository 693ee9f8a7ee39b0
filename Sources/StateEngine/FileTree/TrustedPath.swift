import CLinux
import StatePlatform

/// Opens a directory by a path on which only root and this process's user can replace anything.
///
/// Whoever owns a directory on the path, or may write to it, can replace what follows, by a link to
/// `/etc` for example. So each directory is opened from the one before it, without following links,
/// and its owner and mode are checked. In a sticky directory (`/tmp`) only the owner of an entry
/// can replace it: the next step checks that owner.
///
/// Rejected: realpath(3) and a check of each component. Others may change the path between the two.
enum TrustedPath {
    /// Opens a directory.
    ///
    /// - Parameters:
    ///   - location: Its absolute path.
    ///   - isShared: Whether others than root and this process's user may own or write to the
    ///     directory itself.
    /// - Returns: The directory, and its path without `.` and repeated slashes.
    /// - Throws: ``StateError/Code/storage``, naming the component of the path that is not trusted,
    ///   and what to do.
    /// - Complexity: three system calls for each part of the path.
    static func open(
        _ location: String,
        isShared: Bool
    ) throws(StateError) -> FileTree.Directory {
        guard location.hasPrefix("/") else { throw unusable(location, "the path is not absolute") }
        let names = parts(of: location)
        var here = try step("/", from: AT_FDCWD, location, "/", isLast: names.isEmpty)
        // The owner of `/` can replace everything. In a user namespace this is not root, but an id
        // that stands for all outside users.
        let topOwner = try status(here, location).uid
        var path = ""
        for (index, name) in names.enumerated() {
            guard name != ".." else { throw unusable(location, "remove '..' from the path") }
            try check(here, path.isEmpty ? "/" : path, above: location, topOwner)
            path += "/" + name
            here = try step(
                String(name),
                from: here.descriptor,
                location,
                path,
                isLast: index == names.count - 1
            )
        }
        if !isShared { try checkOwner(here, location) }
        return here
    }

    /// The path that ``open(_:isShared:)`` follows, without `.` and repeated slashes.
    static func path(_ location: String) -> String {
        "/" + parts(of: location).joined(separator: "/")
    }

    /// The names on a path, without `.`.
    static func parts(of location: String) -> [Substring] {
        location.split(separator: "/").filter { $0 != "." }
    }

    private static func step(
        _ name: String,
        from directory: Int32,
        _ location: String,
        _ path: String,
        isLast: Bool
    ) throws(StateError) -> FileTree.Directory {
        while true {
            let opened = clinux_open_step(directory, name, isLast ? 0 : 1)
            if opened >= 0 { return FileTree.Directory(descriptor: opened, path: .root) }
            if errno != EINTR { break }
        }
        let code = errno
        guard code == ENOTDIR || code == ELOOP else {
            throw unusable(location, String(cString: strerror(code)))
        }
        var found = stat()
        guard fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) == 0,
            found.st_mode & S_IFMT == S_IFLNK
        else { throw unusable(location, "it is not a directory") }
        throw unusable(location, "\(path) is a symbolic link; \(instead(of: location))")
    }

    private static func instead(of location: String) -> String {
        guard let resolved = realpath(location, nil) else { return "use a path without links" }
        defer { free(resolved) }
        return "use \(String(cString: resolved))"
    }

    private static func check(
        _ directory: FileTree.Directory,
        _ path: String,
        above location: String,
        _ topOwner: UInt32
    ) throws(StateError) {
        let status = try status(directory, location)
        let reason: String
        if !status.isOwnerTrusted, status.uid != topOwner {
            reason = "belongs to uid \(status.uid)"
        } else if status.mode & 0o022 != 0, status.mode & S_ISVTX == 0 {
            reason = "is writable by others (\(status.access))"
        } else {
            return
        }
        let owners = geteuid() == 0 ? "root" : "root or uid \(geteuid())"
        throw unusable(
            location,
            "\(path) \(reason), who could replace what is in it; each directory above \(location) "
                + "must belong to \(owners) and be writable by nobody else"
        )
    }

    /// Checks that nobody but root and this process's user may write a directory.
    static func checkOwner(
        _ directory: FileTree.Directory,
        _ location: String
    ) throws(StateError) {
        let status = try status(directory, location)
        guard !status.isTrusted else { return }
        throw StateError(
            .storage,
            "others may write to \(location) (\(status.access)): fix its owner and mode "
                + "(chown, chmod), or set shared: true"
        )
    }

    private static func status(
        _ directory: FileTree.Directory,
        _ location: String
    ) throws(StateError) -> FileStatus {
        var found = stat()
        guard fstat(directory.descriptor, &found) == 0 else {
            throw unusable(location, lastSystemError())
        }
        return FileStatus(found)
    }

    private static func unusable(_ location: String, _ reason: String) -> StateError {
        StateError(.storage, "the directory \(location) cannot be used: \(reason)")
    }
}

/// Identifies a directory, even after the kernel has reused its inode number.
struct DirectoryIdentity: Equatable, Sendable {
    let device: UInt64
    let inode: UInt64
    /// When it was created, in nanoseconds since 1970; 0 if the file system does not report that.
    let born: Int64

    init(_ directory: FileTree.Directory) throws(FileFailure) {
        let stamp = try FileStatus(of: directory.descriptor, .root).stamp
        (device, inode) = (stamp.device, stamp.inode)
        born = max(0, clinux_birth_time(directory.descriptor))
    }

    /// Returns true for the same directory, also after a restart, when file systems may have other
    /// device numbers.
    func isSame(as other: DirectoryIdentity) -> Bool {
        guard inode == other.inode else { return false }
        return born > 0 && other.born > 0 ? born == other.born : device == other.device
    }

    /// Returns true if a path leads to the directory, which must be open, so that its inode number
    /// is not reused.
    func stands(at path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && UInt64(found.st_dev) == device
            && UInt64(found.st_ino) == inode
    }
}

extension DirectoryIdentity: CustomStringConvertible {
    /// The text that ``init(_:)-(Substring)`` reads.
    var description: String { "\(device):\(inode):\(born)" }

    init?(_ text: Substring) {
        let parts = text.split(separator: ":")
        guard parts.count == 3, let device = UInt64(parts[0]), let inode = UInt64(parts[1]),
            let born = Int64(parts[2])
        else { return nil }
        (self.device, self.inode, self.born) = (device, inode, born)
    }
}
