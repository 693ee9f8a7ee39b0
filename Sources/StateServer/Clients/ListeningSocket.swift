import CLinux
import Glibc
package import StateEngine
import StateSystem
import StateWire

/// A listening Unix socket, with the claim on its path if this process created it.
///
/// The claim is the lock on `<path>.lock`, held as long as the socket. With the lock, a socket file
/// that nobody serves is replaced; one that is served is left alone. The lock file is never
/// removed: otherwise two processes could each hold a lock, on different files.
///
/// An inherited socket has no claim: its creator owns the path, which is neither changed nor
/// unlinked.
package final class ListeningSocket {
    /// What the server accepts from: non-blocking and close-on-exec.
    package let descriptor: Int32
    /// Where clients connect.
    package let path: String

    private let claim: Claim?
    private var isListening = true

    /// The lock of the path, and the identity of the socket file.
    private struct Claim {
        var lock: Int32
        var file: FileIdentity
    }

    /// Claims `path` and listens there.
    ///
    /// - Parameters:
    ///   - path: At most 107 bytes; missing directories are created, for the owner only.
    ///   - mode: The permission bits of the socket file, set before anybody can connect.
    ///   - group: The group of the socket file; nil for the group of this process.
    /// - Throws: ``StateError/Code/locked``, naming the owner's pid, if another process serves
    ///   `path`; ``StateError/Code/err`` if the path cannot be used. An existing file is unchanged.
    package init(path: String, mode: UInt32, group: UInt32? = nil) throws(StateError) {
        let address = try sockaddr_un(servedAt: path)
        try Directory.makeParent(of: path)
        let lock = try ListeningSocket.lock(path)
        var socket: Int32 = -1
        do throws(StateError) {
            try ListeningSocket.removeStale(path, address)
            socket = try ListeningSocket.makeSocket()
            let file = try ListeningSocket.bind(socket, to: path, address, mode: mode, group)
            claim = Claim(lock: lock, file: file)
        } catch {
            if socket >= 0 { Glibc.close(socket) }
            Glibc.close(lock)
            throw error
        }
        descriptor = socket
        self.path = path
    }

    /// Takes a listening socket that another process created.
    ///
    /// - Throws: ``StateError/Code/err`` if it is not a listening Unix stream socket.
    package init(inherited descriptor: Int32) throws(StateError) {
        guard socketOption(SO_DOMAIN, of: descriptor) == AF_UNIX,
            socketOption(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue),
            socketOption(SO_ACCEPTCONN, of: descriptor) == 1
        else {
            throw StateError(
                .err,
                "the inherited descriptor \(descriptor) is not a listening Unix stream socket"
            )
        }
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
        else { throw StateError(failed: "fcntl on descriptor \(descriptor)") }
        self.descriptor = descriptor
        path = sockaddr_un.path(boundTo: descriptor) ?? "descriptor \(descriptor)"
        claim = nil
    }

    /// Refuses new connections; the claim stays.
    package func stopListening() {
        if isListening { Glibc.close(descriptor) }
        isListening = false
    }

    /// Stops listening, removes the socket file if it is still the one created here, and releases
    /// the claim.
    package func close() {
        stopListening()
        guard let claim else { return }
        // Order matters: the lock goes last, so that nobody replaces the file between check and
        // unlink.
        if FileIdentity(of: path) == claim.file { unlink(path) }
        // Closing is not enough: a child that another thread is starting would keep the lock until
        // its exec.
        clinux_unlock(claim.lock)
        Glibc.close(claim.lock)
    }
}

// MARK: - Claiming a path

extension ListeningSocket {
    /// Takes the lock beside `path`.
    ///
    /// The pid in it is only information.
    private static func lock(_ path: String) throws(StateError) -> Int32 {
        let lockPath = path + ".lock"
        let lock: Int32
        do throws(OpenFailure) {
            lock = try NamedFile.open(lockPath, O_RDWR | O_CREAT | O_NOFOLLOW)
        } catch {
            throw StateError(.err, error.sentence(lockPath))
        }
        guard clinux_lock(lock) == 0 else {
            let isHeld = errno == EAGAIN || errno == EACCES
            let error =
                isHeld
                ? StateError.served(path, by: FileLocks.processNumber(writtenIn: lock))
                : StateError(failed: "locking \(lockPath)")
            Glibc.close(lock)
            throw error
        }
        let text = "\(getpid())\n"
        guard ftruncate(lock, 0) == 0, pwrite(lock, text, text.utf8.count, 0) == text.utf8.count
        else {
            let error = StateError(failed: "writing \(lockPath)")
            Glibc.close(lock)
            throw error
        }
        return lock
    }

    /// Removes the socket file of a process that has ended; refuses a socket that is served, and a
    /// file that is not a socket.
    private static func removeStale(_ path: String, _ address: sockaddr_un) throws(StateError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw StateError(failed: "examining \(path)")
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw StateError(.err, "\(path) exists and is not a socket; it was left alone")
        }
        // One that was ended between bind and the change of its mode; nobody can connect to it.
        let isUnfinished = status.st_mode & 0o7777 == 0 && status.st_uid == geteuid()
        if isUnfinished, geteuid() != 0 { return try unlinkStale(path) }
        let probe = try makeSocket()
        defer { Glibc.close(probe) }
        if address.withAddress({ connect(probe, $0, $1) }) == 0 {
            var peer = clinux_peer()
            let isKnown = clinux_peer_credentials(probe, &peer) == 0 && peer.pid > 0
            throw .served(path, by: isKnown ? peer.pid : nil)
        }
        switch errno {
        case ECONNREFUSED: break
        // A full queue of connections, or another type of socket, also means that it is in use.
        case EAGAIN, EPROTOTYPE: throw .served(path, by: nil)
        default: throw StateError(failed: "connecting to the existing socket \(path)")
        }
        try unlinkStale(path)
    }

    private static func unlinkStale(_ path: String) throws(StateError) {
        guard unlink(path) == 0 || errno == ENOENT else {
            throw StateError(failed: "removing the stale socket \(path)")
        }
    }

    private static func makeSocket() throws(StateError) -> Int32 {
        // SOCK_NONBLOCK and SOCK_CLOEXEC have these values on Linux.
        let flags = O_NONBLOCK | O_CLOEXEC
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | flags, 0)
        guard socket >= 0 else { throw StateError(failed: "creating a socket") }
        return socket
    }

    /// Creates the socket file and listens.
    private static func bind(
        _ socket: Int32,
        to path: String,
        _ address: sockaddr_un,
        mode: UInt32,
        _ group: UInt32?
    ) throws(StateError) -> FileIdentity {
        // The file gets this mode, by which it is known again: nobody else has such a socket.
        guard fchmod(socket, 0) == 0, address.withAddress({ Glibc.bind(socket, $0, $1) }) == 0
        else { throw StateError(failed: "binding \(path)") }
        // Order matters: nobody can connect before `listen`, so nobody connects with another mode
        // or group.
        let file = try change(path, mode: mode, group)
        guard listen(socket, SOMAXCONN) == 0 else {
            let error = StateError(failed: "listening at \(path)")
            if FileIdentity(of: path) == file { unlink(path) }
            throw error
        }
        return file
    }

    /// Gives the file that was just created a mode and a group.
    ///
    /// Whoever may write to the directory can put a link or another socket in its place: so the file
    /// is opened without following a link, looked at, and changed by its descriptor.
    private static func change(
        _ path: String,
        mode: UInt32,
        _ group: UInt32?
    ) throws(StateError) -> FileIdentity {
        let place = clinux_open_link(path)
        defer { if place >= 0 { Glibc.close(place) } }
        var status = stat()
        guard place >= 0, fstat(place, &status) == 0, status.st_mode == S_IFSOCK,
            status.st_uid == geteuid(), status.st_nlink == 1
        else {
            throw StateError(
                .err,
                "\(path) was replaced by another process when it was created: correct who may write "
                    + "to its directory"
            )
        }
        guard clinux_change_place(place, group ?? .max, mode) == 0 else {
            let owner = group.map { " and giving it to the group \($0)" } ?? ""
            let error = StateError(failed: "setting the mode of \(path)\(owner)")
            if FileIdentity(of: path) == FileIdentity(status) { unlink(path) }
            throw error
        }
        return FileIdentity(status)
    }
}

private struct FileIdentity: Equatable {
    var device: dev_t
    var inode: ino_t

    /// The file at `path`, without following a link; nil if there is none.
    init?(of path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    init(_ status: stat) {
        device = status.st_dev
        inode = status.st_ino
    }
}

private func socketOption(_ option: Int32, of descriptor: Int32) -> Int32? {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : nil
}

extension StateError {
    /// Another process serves `path`.
    fileprivate static func served(_ path: String, by pid: pid_t?) -> StateError {
        let owner = pid.map { "process \($0)" } ?? "another process"
        return StateError(
            .locked,
            "\(owner) already serves \(path): stop it, or name another one with --socket"
        )
    }
}

extension sockaddr_un {
    /// The path to which a socket is bound; nil if it has none.
    package static func path(boundTo socket: Int32) -> String? {
        var address = sockaddr_un()
        var size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = withUnsafeMutableBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(socket, $0.baseAddress, &size)
            }
        }
        guard status == 0 else { return nil }
        let name = withUnsafeBytes(of: address.sun_path) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return name.isEmpty ? nil : name
    }
}
