import CLinux
import StatePlatform
import StateSystem

/// The lock that makes one process the owner of a directory of files, held as long as this object
/// lives.
///
/// It is a flock(2) of the directory itself. It needs no file, which others could replace if they
/// may write there, and it ends with the process. But whoever may read the directory may take the
/// lock. So a lock that is held only by users who are neither root nor this process's does not
/// count: otherwise any of them could keep a daemon from starting. `/proc/locks` lists the
/// processes that took one, except those of other PID namespaces. A user's process may take one and
/// end, while its child keeps it: then a process of root may get its number. So a process counts
/// only if it has the lock itself, by `/proc/PID/fdinfo`. If nobody can be asked, the lock counts
/// only if nobody else can open the directory.
final class DirectoryLock {
    private let descriptor: Int32
    private let home = HomeProcess()
    /// Whether a process that cannot be named holds the lock: another daemon, or just a reader.
    private(set) var isHeldByUnknown = false

    /// Takes the lock.
    ///
    /// File systems that do not support it for directories (NFS) are used without.
    ///
    /// - Throws: ``StateError/Code/locked``, naming the owner's pid; ``StateError/Code/storage`` if
    ///   the directory cannot be opened.
    init(_ directory: FileTree.Directory, for shown: String) throws(StateError) {
        // Order matters: a lock belongs to the open file, and the tree's descriptor stays in use
        // after this one is closed.
        let opened = openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else {
            throw StateError(.storage, "\(shown) cannot be locked: \(lastSystemError())")
        }
        descriptor = opened
        let owner: String
        switch DirectoryLock.owner(afterLocking: opened) {
        case .nobody: return
        case .process(let pid): owner = "process \(pid)"
        case .unknown(let pid) where DirectoryLock.isClosed(opened):
            owner = pid.map { "process \($0)" } ?? "another process"
        case .unknown:
            isHeldByUnknown = true
            return
        }
        throw StateError(.locked, "\(shown) is owned by \(owner)")
    }

    deinit {
        // Closing is not enough: if another thread starts a process, the child has the open file
        // until its exec. A child that was forked is not the owner.
        if home.isCurrent { flock(descriptor, LOCK_UN) }
        StatePlatform.close(descriptor)
    }

    private enum Owner {
        /// Nobody, or nobody who counts.
        case nobody
        case process(pid_t)
        /// Of another PID namespace, or a process that this one may not ask about.
        case unknown(pid_t?)
    }

    /// Takes the lock, unless somebody has it.
    private static func owner(afterLocking descriptor: Int32) -> Owner {
        var owner = Owner.unknown(nil)
        // The holder may have released it before it was asked for.
        for _ in 0..<3 {
            guard flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK else {
                return .nobody
            }
            let holders = FileLocks.holders(of: descriptor)
            if !holders.isEmpty { owner = .nobody }
            for pid in holders where isTrusted(pid) {
                guard let isHeld = FileLocks.isHeld(descriptor, by: pid) else {
                    owner = .unknown(pid)
                    continue
                }
                if isHeld { return .process(pid) }
            }
        }
        return owner
    }

    /// Whether only root and this process's user can open a directory, and so lock it.
    private static func isClosed(_ descriptor: Int32) -> Bool {
        let status = try? FileStatus(of: descriptor, .root)
        return status.map { $0.isOwnerTrusted && $0.mode & 0o044 == 0 } ?? false
    }

    /// Whether root or this process's user started a process; the real uid counts, which a setuid
    /// program does not change.
    private static func isTrusted(_ pid: pid_t) -> Bool {
        for line in FileLocks.text(of: "/proc/\(pid)/status").split(separator: "\n")
        where line.hasPrefix("Uid:") {
            let uid = line.dropFirst(4).split(whereSeparator: { $0 == "\t" || $0 == " " }).first
            return uid.flatMap { UInt32($0) }.map { $0 == 0 || $0 == geteuid() } ?? false
        }
        return false
    }
}
