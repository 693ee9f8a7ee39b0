import CLinux
import Glibc
import StateEngine

/// The lock that makes one process the owner of a store, held as long as this object lives.
///
/// A lock of the open file description (F_OFD_SETLK): it goes when the process ends, however it ends, and it keeps two
/// owners in one process apart, which a POSIX lock does not. The kernel does not tell who holds one, so the owner writes
/// its pid into the file. https://man7.org/linux/man-pages/man2/fcntl_locking.2.html
final class OwnerLock {
    private let descriptor: Int32

    /// Takes the lock at `path`, making the file where it is absent.
    ///
    /// - Throws: ``StateError/Code/locked``, naming the owner's pid; ``StateError/Code/storage``, where the file cannot be
    ///   made.
    init(path: String, for store: String) throws(StateError) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else {
            throw StateError(.storage, "\(store) cannot be owned: \(path): \(lastSystemError())")
        }
        guard clinux_lock(opened) == 0 else {
            let error = OwnerLock.refusal(errno, lock: path, descriptor: opened, store: store)
            Glibc.close(opened)
            throw error
        }
        descriptor = opened
        writePid()
    }

    deinit {
        // The file stays: unlinking it would let a third process lock a file that a second one waits for.
        ftruncate(descriptor, 0)
        // Closing is not enough: where another thread starts a process, the child has the open file until its exec.
        clinux_unlock(descriptor)
        Glibc.close(descriptor)
    }

    private func writePid() {
        ftruncate(descriptor, 0)
        let line = Array("\(getpid())\n".utf8)
        pwrite(descriptor, line, line.count, 0)
    }

    private static func refusal(
        _ code: Int32,
        lock path: String,
        descriptor: Int32,
        store: String
    ) -> StateError {
        guard code == EAGAIN || code == EACCES else {
            let reason = String(cString: strerror(code))
            return StateError(.storage, "\(store) cannot be owned: \(path): \(reason)")
        }
        var bytes = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        let digits = bytes.prefix(Swift.max(count, 0)).prefix { $0 != UInt8(ascii: "\n") }
        guard let pid = Int32(String(decoding: digits, as: UTF8.self)) else {
            return StateError(.locked, "\(store) is owned by another process")
        }
        return StateError(.locked, "\(store) is owned by process \(pid)")
    }
}

/// What the last system call of this thread that failed said.
func lastSystemError() -> String { String(cString: strerror(errno)) }
