import CLinux
import StateEngine

/// Memory that a process may have, and takes: beyond it allocations fail, or the kernel ends the process, and neither leaves time to
/// say so.
package struct MemoryBound: Sendable {
    /// What sets it, such as `ulimit -v`.
    package var name: String
    package var byteCount: Int
    /// What counts towards it is taken so far.
    package var usedByteCount: Int

    package init(name: String, byteCount: Int, usedByteCount: Int) {
        (self.name, self.byteCount, self.usedByteCount) = (name, byteCount, usedByteCount)
    }

    package var freeByteCount: Int { byteCount - usedByteCount }
    /// What is kept for buffers and for the next start, which takes some more than a daemon that runs.
    package var reservedByteCount: Int { max(32 << 20, byteCount / 8) }
    /// Whether no more values may be kept.
    package var isShort: Bool { freeByteCount < reservedByteCount }

    package var description: String {
        "\(usedByteCount >> 20) MiB of the \(byteCount >> 20) MiB of memory that \(name) allows"
    }
}

/// When the memory of the process is looked at next: after some time, or after some values were set.
package struct MemorySchedule {
    /// Milliseconds between two looks, while there is room and while there is little.
    private static let (long, short): (Int64, Int64) = (250, 20)
    /// The same while nothing bounds it.
    private static let unbounded: Int64 = 1_000

    /// On the monotonic clock, in milliseconds.
    private var dueAt: Int64 = 0
    /// As many bytes of values as were set in all.
    private var dueByteCount: Int64 = 0

    package init() {}

    package func isDue(at now: Int64, taken byteCount: Int64) -> Bool {
        now >= dueAt || byteCount >= dueByteCount
    }

    /// Plans the next look, after one that found `bound`.
    package mutating func plan(after bound: MemoryBound?, at now: Int64, taken byteCount: Int64) {
        guard let bound, !bound.isShort else {
            // No value is set that takes more; or as many as there may be.
            dueAt = now + (bound == nil ? MemorySchedule.unbounded : MemorySchedule.long)
            dueByteCount = .max
            return
        }
        let isNear = bound.freeByteCount < 4 * bound.reservedByteCount
        dueAt = now + (isNear ? MemorySchedule.short : MemorySchedule.long)
        // A client on this machine writes more in 20 ms than the reserve has, if the disk is fast.
        let room = bound.freeByteCount - bound.reservedByteCount
        dueByteCount = byteCount + Int64(max(room / 2, bound.reservedByteCount / 32))
    }
}
