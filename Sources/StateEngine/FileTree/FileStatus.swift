import Glibc

/// Which contents a file has, as far as the kernel tells without reading them.
struct FileStamp: Hashable {
    var device: UInt64
    var inode: UInt64
    var byteCount: Int64
    /// Nanoseconds since 1970.
    var modified: Int64
}

/// What stands in a place of the directory.
struct FileStatus {
    var stamp: FileStamp
    var mode: mode_t
    var uid: UInt32
    var gid: UInt32
    /// How many names it has.
    var linkCount: UInt64
    /// When anything of the file was changed last, in nanoseconds since 1970; no program can set it.
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

    /// Whose it is, for a message.
    var access: String { "uid \(uid), mode \(String(mode & 0o7777, radix: 8))" }

    /// What it is, in words.
    var kind: String {
        switch mode & S_IFMT {
        case S_IFREG: "a file"
        case S_IFDIR: "a directory"
        case S_IFLNK: "a symbolic link"
        case S_IFIFO: "a pipe"
        case S_IFSOCK: "a socket"
        default: "a device"
        }
    }
}

/// A system call on something in the directory that failed.
struct FileFailure: Error {
    let call: StaticString
    let path: FilePath
    let code: Int32
    /// What is wrong, if no system call says so.
    private var finding: String?

    /// A directory that others may change, where nobody else should.
    init(untrusted path: FilePath, _ status: FileStatus) {
        self.init("open", path, EACCES)
        finding =
            "others may change what is in \(path) (\(status.access)), and the directory is not shared: chown and chmod it"
    }

    /// More names than there may be.
    init(tooManyNames limit: Int) {
        self.init("readdir", .root, E2BIG)
        finding =
            "there are more than \(limit) names in it (limits.files): the rest is not looked at"
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

    /// The same without the place.
    var reason: String { String(cString: strerror(code)) }

    /// Whether nothing can be written at the moment, whatever its name is.
    var isOfStorage: Bool {
        [ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE, ENOMEM].contains(code)
    }

    /// Whether something else than a file or directory of the store stands in the way.
    var isObstacle: Bool { [ENOTDIR, EISDIR, ELOOP, ENOTEMPTY, EXDEV].contains(code) }

    /// Whether this process may not give the new file the owner of the old one.
    var isOwnership: Bool { code == EPERM && call.description == "fchown" }

    /// The error of a commit of which nothing was done.
    var refusal: StateError {
        let isFull = code == ENOSPC || code == EDQUOT
        return StateError(isFull ? .noSpace : .readOnly, "\(sentence); nothing was committed")
    }
}
