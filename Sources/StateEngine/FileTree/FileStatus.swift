import StatePlatform
import StateSystem

/// Identifies the contents of a file, as far as the kernel can report that without reading them.
struct FileStamp: Hashable {
    var device: UInt64
    var inode: UInt64
    var byteCount: Int64
    /// Nanoseconds since 1970.
    var modified: Int64
}

/// The status of what is at a path.
struct FileStatus {
    var stamp: FileStamp
    var mode: mode_t
    var uid: UInt32
    var gid: UInt32
    /// How many names it has.
    var linkCount: UInt64
    /// When anything about the file last changed, in nanoseconds since 1970; no program can set it.
    var changed: Int64

    init(_ status: stat) {
        stamp = FileStamp(
            device: UInt64(status.st_dev),
            inode: UInt64(status.st_ino),
            byteCount: Int64(status.st_size),
            modified: FileStatus.nanoseconds(status.st_mtim)
        )
        mode = status.st_mode
        uid = status.st_uid
        gid = status.st_gid
        linkCount = UInt64(status.st_nlink)
        changed = FileStatus.nanoseconds(status.st_ctim)
    }

    /// The status of an open file.
    init(of descriptor: Int32, _ path: FilePath) throws(FileFailure) {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { throw FileFailure("fstat", path) }
        self.init(found)
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    var isRegular: Bool { mode & S_IFMT == S_IFREG }
    var isDirectory: Bool { mode & S_IFMT == S_IFDIR }

    /// Whether it belongs to root or this process's user.
    var isOwnerTrusted: Bool { uid == 0 || uid == geteuid() }

    /// Whether nobody else may change what is in it.
    var isTrusted: Bool { isOwnerTrusted && mode & 0o022 == 0 }

    /// Owner and mode, for a message.
    var access: String { "uid \(uid), mode \(String(mode & 0o7777, radix: 8))" }

    /// Its type, as text.
    var kind: String { fileKind(UInt32(mode)) }
}

/// A failed system call on something in the directory.
struct FileFailure: Error {
    let call: StaticString
    let path: FilePath
    let code: Int32
    /// The problem, if it is not an error of a system call.
    private var finding: String?

    /// A directory that others may change, but must not.
    init(untrusted path: FilePath, _ status: FileStatus) {
        self.init("open", path, EACCES)
        finding =
            "others may change \(path) (\(status.access)), and the directory is not shared: "
            + "fix its owner and mode (chown, chmod)"
    }

    /// More names than the limit.
    init(tooManyNames limit: Int) {
        self.init("readdir", .root, E2BIG)
        finding =
            "it has more than \(limit) names (limits.files): the rest is ignored"
    }

    /// Whether others may change the directory.
    var isUntrusted: Bool { finding != nil && code == EACCES }

    /// Reads errno.
    init(_ call: StaticString, _ path: FilePath) { self.init(call, path, errno) }

    init(_ call: StaticString, _ path: FilePath, _ code: Int32) {
        self.call = call
        self.path = path
        self.code = code
    }

    var sentence: String { finding ?? "\(call) \(path): \(reason)" }

    /// The same without the path.
    var reason: String { String(cString: strerror(code)) }

    /// Whether nothing can be written now, whatever its name is.
    var isOfStorage: Bool {
        [ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE, ENOMEM].contains(code)
    }

    /// Whether something other than a file or directory of the store is in the way.
    var isObstacle: Bool { [ENOTDIR, EISDIR, ELOOP, ENOTEMPTY, EXDEV].contains(code) }

    /// Whether this process may not set the owner of the old file on the new one.
    var isOwnership: Bool { code == EPERM && call.description == "fchown" }

    /// The error of a commit that changed nothing.
    var refusal: StateError {
        let isFull = code == ENOSPC || code == EDQUOT
        return StateError(isFull ? .noSpace : .readOnly, "\(sentence); nothing was committed")
    }
}
