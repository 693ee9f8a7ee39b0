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
        changed = FileStatus.nanoseconds(status.st_ctim)
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    var isRegular: Bool { mode & S_IFMT == S_IFREG }
    var isDirectory: Bool { mode & S_IFMT == S_IFDIR }

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

    /// Reads errno.
    init(_ call: StaticString, _ path: FilePath) { self.init(call, path, errno) }

    init(_ call: StaticString, _ path: FilePath, _ code: Int32) {
        self.call = call
        self.path = path
        self.code = code
    }

    var sentence: String { "\(call) \(path): \(String(cString: strerror(code)))" }

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
