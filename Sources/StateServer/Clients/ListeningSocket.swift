import CLinux
import Glibc
package import StateEngine

/// A Unix socket that listens, with the claim on its path where the path is ours.
///
/// The claim is the lock on `<path>.lock`, held for as long as the socket is. Under it a socket file that nobody
/// serves is replaced; one that answers is somebody's, and is left alone. The lock file stays when the claim
/// ends: a lock file that is removed is one that two processes may hold, each its own.
///
/// An inherited socket has no claim: its path is not changed and not unlinked, for it belongs to whoever made it.
package final class ListeningSocket {
    /// What the server accepts from: non-blocking and close-on-exec.
    package let descriptor: Int32
    /// Where clients connect.
    package let path: String

    private let claim: Claim?
    private var isListening = true

    /// What is held of the path, and which file there is ours.
    private struct Claim {
        var lock: Int32
        var file: FileIdentity
    }

    /// Claims `path` and listens there.
    ///
    /// - Parameters:
    ///   - path: At most 107 bytes; missing directories are made, for the owner only.
    ///   - mode: Who may connect: the permission bits of the socket file, set before anybody can.
    ///   - group: Whose the socket file is too; nil for the group of this process.
    /// - Throws: ``StateError/Code/locked``, naming the owner's pid, where somebody else serves `path`;
    ///   ``StateError/Code/err`` where the path cannot be used. What was there is as it was.
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

    /// Takes a socket that somebody else made, and that listens already.
    ///
    /// - Throws: ``StateError/Code/err`` where it is no Unix stream socket that listens.
    package init(inherited descriptor: Int32) throws(StateError) {
        guard socketOption(SO_DOMAIN, of: descriptor) == AF_UNIX,
            socketOption(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue),
            socketOption(SO_ACCEPTCONN, of: descriptor) == 1
        else {
            throw StateError(
                .err,
                "the inherited descriptor \(descriptor) is no Unix stream socket that listens"
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

    /// Refuses who connects from now on; the path stays ours.
    package func stopListening() {
        if isListening { Glibc.close(descriptor) }
        isListening = false
    }

    /// Stops listening, removes the socket file if it is still the one that was made here, and gives up the claim.
    package func close() {
        stopListening()
        guard let claim else { return }
        // Order matters: the lock goes last, so that nobody replaces the file between the look and the unlink.
        if FileIdentity(of: path) == claim.file { unlink(path) }
        // Closing alone would leave it to a process that another thread is starting, until its exec.
        clinux_unlock(claim.lock)
        Glibc.close(claim.lock)
    }
}

// MARK: - Claiming a path

extension ListeningSocket {
    /// Takes the lock beside `path`; the pid in it is for people.
    private static func lock(_ path: String) throws(StateError) -> Int32 {
        let lockPath = path + ".lock"
        let lock = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { throw StateError(failed: "opening \(lockPath)") }
        guard clinux_lock(lock) == 0 else {
            let isHeld = errno == EAGAIN || errno == EACCES
            let error =
                isHeld
                ? StateError.served(path, by: pid(writtenIn: lock))
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

    /// The pid that the holder wrote; nil where it has not written it yet.
    private static func pid(writtenIn lock: Int32) -> pid_t? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = pread(lock, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return pid_t(String(decoding: bytes[..<count].prefix { $0 != 10 }, as: UTF8.self))
    }

    /// Removes the socket file of a process that has ended; refuses one that somebody serves, and what is no socket.
    private static func removeStale(_ path: String, _ address: sockaddr_un) throws(StateError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw StateError(failed: "looking at \(path)")
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw StateError(.err, "\(path) is there and is no socket; it was left alone")
        }
        let probe = try makeSocket()
        defer { Glibc.close(probe) }
        if address.withAddress({ connect(probe, $0, $1) }) == 0 {
            var peer = clinux_peer()
            let isKnown = clinux_peer_credentials(probe, &peer) == 0 && peer.pid > 0
            throw .served(path, by: isKnown ? peer.pid : nil)
        }
        switch errno {
        case ECONNREFUSED: break
        // A full queue of connections, and a socket of another type, are somebody's too.
        case EAGAIN, EPROTOTYPE: throw .served(path, by: nil)
        default: throw StateError(failed: "connecting to the socket that is at \(path)")
        }
        guard unlink(path) == 0 || errno == ENOENT else {
            throw StateError(failed: "removing the stale socket \(path)")
        }
    }

    private static func makeSocket() throws(StateError) -> Int32 {
        // SOCK_NONBLOCK and SOCK_CLOEXEC have these values on Linux.
        let flags = O_NONBLOCK | O_CLOEXEC
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | flags, 0)
        guard socket >= 0 else { throw StateError(failed: "making a socket") }
        return socket
    }

    /// Makes the socket file and listens.
    private static func bind(
        _ socket: Int32,
        to path: String,
        _ address: sockaddr_un,
        mode: UInt32,
        _ group: UInt32?
    ) throws(StateError) -> FileIdentity {
        guard address.withAddress({ Glibc.bind(socket, $0, $1) }) == 0 else {
            throw StateError(failed: "binding \(path)")
        }
        // Order matters: nobody can connect before `listen`, so nobody connects under another mode or group.
        if let group, chown(path, .max, group) != 0 {
            let error = StateError(failed: "giving \(path) to the group \(group)")
            unlink(path)
            throw error
        }
        guard let file = FileIdentity(of: path), chmod(path, mode) == 0,
            listen(socket, SOMAXCONN) == 0
        else {
            let error = StateError(failed: "listening at \(path)")
            unlink(path)
            throw error
        }
        return file
    }
}

private struct FileIdentity: Equatable {
    var device: dev_t
    var inode: ino_t

    /// The file at `path`, a link not followed; nil where there is none.
    init?(of path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
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
    /// Somebody else serves `path`.
    fileprivate static func served(_ path: String, by pid: pid_t?) -> StateError {
        let owner = pid.map { "process \($0)" } ?? "another process"
        return StateError(.locked, "\(owner) serves \(path) already")
    }
}
