import CLinux
import Glibc

/// The way from `/` to a directory, where nobody but root and this process's user can put another one in its place.
///
/// Whoever owns a directory on the way, or may write it, can replace what follows, by a link to `/etc` for example. So each directory is
/// opened by itself, in the one before it, without following a link, and its owner and mode are checked. In a sticky directory (`/tmp`)
/// only the owner of an entry can replace it: the next step checks that one.
///
/// Rejected: realpath(3) and a check of each part of it, which are two looks at what others may change between them.
enum TrustedPath {
    /// Opens a directory.
    ///
    /// - Parameters:
    ///   - location: Its absolute path.
    ///   - isShared: Whether others than root and this process's user may own or write the directory itself.
    /// - Returns: The directory, and its path without `.` and repeated slashes.
    /// - Throws: ``StateError/Code/storage``, naming the part of the path that is not to be trusted, and what to do.
    /// - Complexity: three system calls for each part of the path.
    static func open(
        _ location: String,
        isShared: Bool
    ) throws(StateError) -> FileTree.Directory {
        guard location.hasPrefix("/") else { throw unusable(location, "it is no absolute path") }
        let names = parts(of: location)
        var here = try step("/", from: AT_FDCWD, location, "/", isLast: names.isEmpty)
        // Whoever owns `/` can replace all of it. In a user namespace that is not root, but a number that stands for everybody outside.
        let topOwner = try status(here, location).uid
        var path = ""
        for (index, name) in names.enumerated() {
            guard name != ".." else { throw unusable(location, "write it without '..'") }
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

    /// The path that ``open(_:isShared:)`` goes, without `.` and repeated slashes.
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
        else { throw unusable(location, "it is no directory") }
        throw unusable(location, "\(path) is a symbolic link; \(instead(of: location))")
    }

    private static func instead(of location: String) -> String {
        guard let resolved = realpath(location, nil) else { return "write the path without links" }
        defer { free(resolved) }
        return "write \(String(cString: resolved))"
    }

    private static func check(
        _ directory: borrowing FileTree.Directory,
        _ path: String,
        above location: String,
        _ topOwner: UInt32
    ) throws(StateError) {
        let status = try status(directory, location)
        let reason: String
        if !status.isOwnerTrusted, status.uid != topOwner {
            reason = "belongs to uid \(status.uid)"
        } else if status.mode & 0o022 != 0, status.mode & S_ISVTX == 0 {
            reason = "is writable for others (\(status.access))"
        } else {
            return
        }
        let owners = geteuid() == 0 ? "root" : "root or uid \(geteuid())"
        throw unusable(
            location,
            "\(path) \(reason), who could put another directory in its place; "
                + "each directory above it has to belong to \(owners) and be writable for nobody else"
        )
    }

    /// Checks that nobody but root and this process's user may write a directory.
    static func checkOwner(
        _ directory: borrowing FileTree.Directory,
        _ location: String
    ) throws(StateError) {
        let status = try status(directory, location)
        guard !status.isTrusted else { return }
        throw StateError(
            .storage,
            "others may write \(location) (\(status.access)): chown and chmod it, or set shared: true"
        )
    }

    private static func status(
        _ directory: borrowing FileTree.Directory,
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

/// Which directory stands at a place, also once the kernel has given its number to another.
struct DirectoryIdentity: Equatable, Sendable {
    let device: UInt64
    let inode: UInt64
    /// When it was made, in nanoseconds since 1970; 0 if the file system does not say.
    let born: Int64

    init(_ directory: borrowing FileTree.Directory) throws(FileFailure) {
        let stamp = try FileStatus(of: directory.descriptor, .root).stamp
        (device, inode) = (stamp.device, stamp.inode)
        born = max(0, clinux_birth_time(directory.descriptor))
    }

    /// Returns true for the same directory, also after another start: file systems may get other device numbers.
    func isSame(as other: DirectoryIdentity) -> Bool {
        guard inode == other.inode else { return false }
        return born > 0 && other.born > 0 ? born == other.born : device == other.device
    }

    /// Returns true if a path leads to the directory, while that is open: its number cannot be another's then.
    func stands(at path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && UInt64(found.st_dev) == device
            && UInt64(found.st_ino) == inode
    }
}

extension DirectoryIdentity: CustomStringConvertible {
    /// As ``init(_:)-(Substring)`` reads it.
    var description: String { "\(device):\(inode):\(born)" }

    init?(_ text: Substring) {
        let parts = text.split(separator: ":")
        guard parts.count == 3, let device = UInt64(parts[0]), let inode = UInt64(parts[1]),
            let born = Int64(parts[2])
        else { return nil }
        (self.device, self.inode, self.born) = (device, inode, born)
    }
}
