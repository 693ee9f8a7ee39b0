import CLinux
import StateEngine

/// A memory limit of the process, and the memory used: above the limit, allocations fail or the
/// kernel kills the process, without time for a message.
package struct MemoryBound: Sendable {
    /// The source of the limit, such as `ulimit -v`.
    package var name: String
    package var byteCount: Int
    /// The memory used that counts towards it.
    package var usedByteCount: Int

    package init(name: String, byteCount: Int, usedByteCount: Int) {
        (self.name, self.byteCount, self.usedByteCount) = (name, byteCount, usedByteCount)
    }

    package var freeByteCount: Int { byteCount - usedByteCount }
    /// The reserve for buffers and for the next start, which needs more than a running daemon.
    package var reservedByteCount: Int { max(32 << 20, byteCount / 8) }
    /// Whether no more values may be added.
    package var isShort: Bool { freeByteCount < reservedByteCount }

    package var description: String {
        "\(usedByteCount >> 20) MiB of the \(byteCount >> 20) MiB of memory that \(name) allows"
    }
}

/// When the memory of the process is checked next: after some time, or after some values were set.
package struct MemorySchedule {
    /// Milliseconds between two checks, with enough and with little room.
    private static let (long, short): (Int64, Int64) = (250, 20)
    /// The same without a limit.
    private static let unbounded: Int64 = 1_000

    /// On the monotonic clock, in milliseconds.
    private var dueAt: Int64 = 0
    /// The total bytes of values at which it is due.
    private var dueByteCount: Int64 = 0

    package init() {}

    package func isDue(at now: Int64, taken byteCount: Int64) -> Bool {
        now >= dueAt || byteCount >= dueByteCount
    }

    /// Plans the next check, after one that found `bound`.
    package mutating func plan(after bound: MemoryBound?, at now: Int64, taken byteCount: Int64) {
        guard let bound, !bound.isShort else {
            // No value may be added any more, or there is no limit: only time matters.
            dueAt = now + (bound == nil ? MemorySchedule.unbounded : MemorySchedule.long)
            dueByteCount = .max
            return
        }
        let isNear = bound.freeByteCount < 4 * bound.reservedByteCount
        dueAt = now + (isNear ? MemorySchedule.short : MemorySchedule.long)
        // With a fast disk, a client can write more than the reserve in 20 ms.
        let room = bound.freeByteCount - bound.reservedByteCount
        dueByteCount = byteCount + Int64(max(room / 2, bound.reservedByteCount / 32))
    }
}
