import CLinux
import Glibc
import StateEngine
import Synchronization

/// The state of a job that the loop and the history thread share.
final class JobControl: Sendable {
    /// The number of the connection that it reads for; negative for the daemon itself.
    let connection: Int
    private let cancelled = Atomic(false)
    private let held = Atomic(0)
    private let reported = Atomic(0)
    private let used = Atomic<Int64>(0)
    /// The user for whom it reads.
    let uid: UInt32
    /// Whether that is root or the daemon's own user, who have priority.
    let isPrivileged: Bool

    init(for connection: Connection) {
        self.connection = connection.number
        uid = connection.peer.uid
        isPrivileged = connection.subject.isPrivileged
    }

    /// For a read of the daemon itself.
    init() {
        connection = -1
        uid = geteuid()
        isPrivileged = true
    }

    /// Whether nobody waits for it any more.
    var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

    /// Ends it after the current slice; the rest is not read.
    func cancel() { cancelled.store(true, ordering: .relaxed) }

    /// Bytes that it holds, as last reported by the history thread; 0 once it is cancelled, because
    /// they are freed at once.
    var byteCount: Int { isCancelled ? 0 : held.load(ordering: .relaxed) }

    /// The processor time of the history thread for it, in nanoseconds.
    var usedNanoseconds: Int64 { used.load(ordering: .relaxed) }

    /// Adds the time of a slice; called on the history thread.
    func add(nanoseconds: Int64) { used.wrappingAdd(nanoseconds, ordering: .relaxed) }

    /// Records the bytes that it holds after a slice; called on the history thread.
    ///
    /// - Returns: Whether the number differs by at least 64 KiB from the last reported one.
    func note(byteCount: Int) -> Bool {
        held.store(byteCount, ordering: .relaxed)
        guard abs(byteCount - reported.load(ordering: .relaxed)) >= 64 << 10 else { return false }
        reported.store(byteCount, ordering: .relaxed)
        return true
    }
}
