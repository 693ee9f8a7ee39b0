import CLinux
import StatePlatform

/// Opens files by the names that people, configurations and stores give.
///
/// A plain open(2) of a FIFO waits until another process opens the other end, which may never
/// happen (https://man7.org/linux/man-pages/man7/fifo.7.html). Each file is therefore opened
/// without waiting, and then checked to be of the right kind.
package enum NamedFile {
    /// What may be at a name.
    package enum Kind {
        /// A file.
        case file
        /// A file, or `/dev/null`, which stands for an empty one.
        case fileOrNull
        /// Also a device, or a pipe whose other end is open: what a person names for one run of a
        /// program, such as `<(command)` in a shell.
        case stream
    }

    /// How long a FIFO may lack its other end: a shell starts both processes at the same time.
    private static let millisecondsToMeet: Int32 = 2_000
    /// Longer than another process may keep a lease on a file that is being opened: 45 s, unless
    /// `/proc/sys/fs/lease-break-time` has another number.
    private static let leaseMilliseconds: Int32 = 60_000
    private static let pauseMilliseconds: Int32 = 10

    /// Opens a file, close-on-exec.
    ///
    /// - Parameters:
    ///   - path: Its name.
    ///   - flags: Those of open(2).
    ///   - mode: The permissions of a file that this creates.
    ///   - kind: What may be there. Anything else is left as it is.
    /// - Returns: Its descriptor, whose reads and writes wait as usual.
    /// - Throws: ``OpenFailure``. A FIFO without another end is one after 2 s; a file on which
    ///   another process keeps a lease, after 60 s.
    package static func open(
        _ path: UnsafePointer<CChar>,
        _ flags: Int32,
        mode: UInt32 = 0o600,
        as kind: Kind = .file
    ) throws(OpenFailure) -> Int32 {
        let allFlags = flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        var waited: Int32 = 0
        while true {
            let descriptor = StatePlatform.open(path, allFlags, mode_t(mode))
            if descriptor >= 0 { return try checked(descriptor, flags, kind) }
            let failure = OpenFailure(path, follows: flags & O_NOFOLLOW == 0, kind)
            guard waited < patience(with: failure) else { throw failure }
            usleep(UInt32(pauseMilliseconds) * 1_000)
            waited += pauseMilliseconds
        }
    }

    /// For how many milliseconds to try again after a failure.
    private static func patience(with failure: OpenFailure) -> Int32 {
        switch failure.code {
        case EINTR: .max
        case EWOULDBLOCK: leaseMilliseconds
        case ENXIO where failure.reason == .noReader: millisecondsToMeet
        default: 0
        }
    }

    private static func checked(
        _ descriptor: Int32,
        _ flags: Int32,
        _ kind: Kind
    ) throws(OpenFailure) -> Int32 {
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        var failure = OpenFailure(code: errno)
        if isKnown {
            failure = OpenFailure(reason: .kind(fileKind(UInt32(status.st_mode))))
            if allows(status, kind) {
                let isRead = flags & O_ACCMODE == O_RDONLY
                guard isRead, status.st_mode & S_IFMT == S_IFIFO,
                    clinux_has_writer(descriptor, millisecondsToMeet) == 0
                else {
                    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
                    return descriptor
                }
                failure = OpenFailure(reason: .noWriter)
            }
        }
        close(descriptor)
        throw failure
    }

    fileprivate static func allows(_ status: stat, _ kind: Kind) -> Bool {
        switch status.st_mode & S_IFMT {
        case S_IFREG: true
        case S_IFIFO, S_IFBLK: kind == .stream
        case S_IFCHR: kind == .stream || kind == .fileOrNull && isNull(status)
        default: false
        }
    }

    private static func isNull(_ status: stat) -> Bool {
        var null = stat()
        return stat("/dev/null", &null) == 0 && status.st_rdev == null.st_rdev
    }

    /// Reads an open file to its end.
    ///
    /// - Parameters:
    ///   - descriptor: The file, from where it was read to.
    ///   - limit: The most bytes that are of interest.
    /// - Returns: All of its bytes, or more than `limit` of them; nil if it cannot be read: then
    ///   `errno` has the reason.
    package static func contents(of descriptor: Int32, limit: Int = .max) -> [UInt8]? {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= limit {
            let count = read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += part[..<count]
        }
        return bytes
    }

    /// Checks that a name which another library opens has a file, or nothing yet.
    ///
    /// - Throws: ``OpenFailure``, if something else is there.
    package static func require(_ path: String) throws(OpenFailure) {
        var status = stat()
        guard stat(path, &status) == 0, !allows(status, .file) else { return }
        throw OpenFailure(reason: .kind(fileKind(UInt32(status.st_mode))))
    }
}

/// Why a file is not open.
package struct OpenFailure: Error {
    /// What is wrong besides an error of the system.
    package enum Reason: Equatable, Sendable {
        /// What is there, in words.
        case kind(String)
        case noWriter
        case noReader
    }

    /// The number of the system's error; 0 if there was none.
    package let code: Int32
    package let reason: Reason?

    fileprivate init(code: Int32 = 0, reason: Reason? = nil) {
        (self.code, self.reason) = (code, reason)
    }

    /// Reads `errno`, and looks at what could not be opened.
    fileprivate init(_ path: UnsafePointer<CChar>, follows: Bool, _ kind: NamedFile.Kind) {
        code = errno
        var status = stat()
        guard (follows ? stat(path, &status) : lstat(path, &status)) == 0 else {
            reason = nil
            return
        }
        let isFIFO = status.st_mode & S_IFMT == S_IFIFO
        if !NamedFile.allows(status, kind) {
            reason = .kind(fileKind(UInt32(status.st_mode)))
        } else {
            reason = isFIFO && code == ENXIO ? .noReader : nil
        }
    }

    /// Whether nothing has the name.
    package var isAbsence: Bool { code == ENOENT }

    /// The failure in words.
    ///
    /// - Parameters:
    ///   - path: The name of the file in messages.
    ///   - aim: What cannot be done, such as `read`.
    /// - Returns: A sentence: `PATH is a FIFO, not a file`, or `PATH cannot be opened: …`.
    package func sentence(_ path: String, _ aim: String = "opened") -> String {
        switch reason {
        case .kind(let kind): "\(path) is \(kind), not a file"
        case .noWriter:
            "\(path) is a FIFO that nobody writes to; start the process that writes to it first"
        case .noReader:
            "\(path) is a FIFO that nobody reads; start the process that reads it first"
        case nil: "\(path) cannot be \(aim): \(String(cString: strerror(code)))"
        }
    }
}

/// What has this mode, in words.
package func fileKind(_ mode: UInt32) -> String {
    switch mode_t(mode) & S_IFMT {
    case S_IFREG: "a file"
    case S_IFDIR: "a directory"
    case S_IFLNK: "a symbolic link"
    case S_IFIFO: "a FIFO"
    case S_IFSOCK: "a socket"
    default: "a device"
    }
}
