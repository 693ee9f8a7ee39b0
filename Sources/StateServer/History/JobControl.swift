import CLinux
import Glibc
import StateEngine
import Synchronization

/// What the loop and the history thread tell each other of one job.
final class JobControl: Sendable {
    /// The number of the connection that it reads for; negative for the daemon itself.
    let connection: Int
    private let cancelled = Atomic(false)
    private let held = Atomic(0)
    private let told = Atomic(0)
    private let used = Atomic<Int64>(0)
    /// Whom it reads for.
    let uid: UInt32
    /// Whether that is root or the daemon's own user, whom others wait for.
    let isPrivileged: Bool

    init(for connection: Connection) {
        self.connection = connection.number
        uid = connection.peer.uid
        isPrivileged = connection.subject.isPrivileged
    }

    /// What is read for the daemon itself.
    init() {
        connection = -1
        uid = geteuid()
        isPrivileged = true
    }

    /// Nobody waits for it any more.
    var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

    /// Has it end after the slice at hand; the rest is not read.
    func cancel() { cancelled.store(true, ordering: .relaxed) }

    /// Bytes that it holds, as the history thread said last; none once it is cancelled, for they are freed at once.
    var byteCount: Int { isCancelled ? 0 : held.load(ordering: .relaxed) }

    /// What the history thread has had of a processor for it, in nanoseconds.
    var usedNanoseconds: Int64 { used.load(ordering: .relaxed) }

    /// Adds what a slice took; on the history thread.
    func add(nanoseconds: Int64) { used.wrappingAdd(nanoseconds, ordering: .relaxed) }

    /// Takes over what it holds after a slice; on the history thread.
    ///
    /// - Returns: Whether that is notably another number than the last of which this was true.
    func note(byteCount: Int) -> Bool {
        held.store(byteCount, ordering: .relaxed)
        guard abs(byteCount - told.load(ordering: .relaxed)) >= 64 << 10 else { return false }
        told.store(byteCount, ordering: .relaxed)
        return true
    }
}
