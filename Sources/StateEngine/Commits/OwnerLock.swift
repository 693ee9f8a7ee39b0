import CLinux
import StatePlatform
import StateSystem

/// The lock that makes one process the owner of a store, held as long as this object lives.
///
/// A lock of the open file description (F_OFD_SETLK): it ends with the process, however that ends,
/// and it also excludes a second owner in the same process, which a POSIX lock does not. The kernel
/// does not report who holds such a lock, so the owner writes its pid into the file.
/// https://man7.org/linux/man-pages/man2/fcntl_locking.2.html
package final class OwnerLock {
    private var descriptor: Int32
    private let home = HomeProcess()
    /// The locked file of the store itself; -1 for none.
    private var held: Int32 = -1

    /// Takes the lock at `path`, creating the file if it is missing.
    ///
    /// - Throws: ``StateError/Code/locked``, naming the owner's pid; ``StateError/Code/storage`` if
    ///   the file cannot be created.
    package init(path: String, for store: String) throws(StateError) {
        let opened: Int32
        do throws(OpenFailure) {
            opened = try NamedFile.open(path, O_RDWR | O_CREAT | O_NOFOLLOW)
        } catch {
            throw StateError(.storage, "\(store) cannot be locked: \(error.sentence(path))")
        }
        guard clinux_lock(opened) == 0 else {
            let error = OwnerLock.refusal(errno, lock: path, descriptor: opened, store: store)
            StatePlatform.close(opened)
            throw error
        }
        descriptor = opened
        writePid()
    }

    /// Locks a file of the store itself, too: somebody may remove the lock file, and then another
    /// process would create a new one.
    ///
    /// Uses flock(2), which does not interfere with the locks that SQLite has on its database.
    /// Closing a descriptor of a file drops those, so this lock must outlive each connection.
    /// On Darwin the two exclude each other: there this locks nothing.
    ///
    /// - Throws: ``StateError/Code/locked``, naming the owner's pid; ``StateError/Code/storage`` if
    ///   the file cannot be opened.
    package func hold(_ path: String) throws(StateError) {
        guard held < 0 else { return }
        let opened: Int32
        do throws(OpenFailure) { opened = try NamedFile.open(path, O_RDONLY | O_NOFOLLOW) } catch {
            throw StateError(.storage, error.sentence(path, "locked"))
        }
        guard clinux_hold(opened) == 0 || errno != EWOULDBLOCK else {
            let owner = FileLocks.holders(of: opened).first.map { "process \($0)" }
            StatePlatform.close(opened)
            throw StateError(.locked, "\(path) is owned by \(owner ?? "another process")")
        }
        held = opened
    }

    /// Whether this process took it: a child that was forked has its files, and is not the owner.
    package var isOfThisProcess: Bool { home.isCurrent }

    /// Closes what a child that was forked has of it: as long as it is open there, nobody gets the lock after
    /// the owner's end.
    package func leaveToOwner() {
        for file in [held, descriptor] where file >= 0 { StatePlatform.close(file) }
        (held, descriptor) = (-1, -1)
    }

    deinit {
        guard isOfThisProcess else { return leaveToOwner() }
        if held >= 0 {
            flock(held, LOCK_UN)
            StatePlatform.close(held)
        }
        // The file stays: unlinking it would let a third process lock a file that a second one
        // waits for.
        ftruncate(descriptor, 0)
        // Closing is not enough: if another thread starts a process, the child has the open file
        // until its exec.
        clinux_unlock(descriptor)
        StatePlatform.close(descriptor)
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
            return StateError(.storage, "\(store) cannot be locked: \(path): \(reason)")
        }
        return StateError(.locked, "\(store) is owned by \(owner(in: descriptor))")
    }

    private static func owner(in descriptor: Int32) -> String {
        FileLocks.processNumber(writtenIn: descriptor).map { "process \($0)" } ?? "another process"
    }

    /// The owner of the store whose lock is at `path`, or of a lock on its `file`, as text; nil if
    /// there is none.
    ///
    /// Takes no lock and changes nothing.
    package static func owner(path: String, of file: String) throws(StateError) -> String? {
        if let pid = FileLocks.holders(of: file).first { return "process \(pid)" }
        let descriptor: Int32
        do throws(OpenFailure) {
            descriptor = try NamedFile.open(path, O_RDONLY | O_NOFOLLOW)
        } catch {
            if error.isAbsence { return nil }
            throw StateError(.storage, error.sentence(path, "read"))
        }
        defer { StatePlatform.close(descriptor) }
        return clinux_is_locked(descriptor) == 1 ? owner(in: descriptor) : nil
    }
}

/// The message of the last system call of this thread that failed.
package func lastSystemError() -> String { String(cString: strerror(errno)) }
