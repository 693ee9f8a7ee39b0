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

/// Memory of the whole process: new values are refused before it runs out, so that the kernel does not end the daemon and it
/// can start again.
extension Server {
    /// Milliseconds between two looks, while there is room and while there is little.
    private static let (long, short): (Int64, Int64) = (250, 20)
    /// Values that are set between two looks, in bytes: half of the room that there is, but not less than this.
    private static let leastByteCount: Int64 = 1 << 20

    /// Finds out whether there is memory for more values.
    func lookAtMemoryIfDue() {
        let now = SystemClock.monotonicMilliseconds()
        guard now >= memoryDueAt || dispatcher.takenByteCount >= memoryDueByteCount else { return }
        memoryDueByteCount = .max
        guard var bound = options.memoryBound() else {
            memoryDueAt = now + 1_000
            return take(nil)
        }
        let isNear = bound.freeByteCount < 4 * bound.reservedByteCount
        memoryDueAt = now + (isNear ? Server.short : Server.long)
        if bound.isShort {
            // What was freed goes to the next values, and mostly not back to the kernel. Finding out takes a walk through it.
            bound.usedByteCount -= clinux_free_heap_byte_count()
            if bound.isShort { memoryDueAt = now + Server.long }
        }
        // A client on this machine writes more in 20 ms than the reserve has, if the disk is fast.
        let room = Int64(bound.freeByteCount - bound.reservedByteCount)
        memoryDueByteCount = dispatcher.takenByteCount + max(room / 2, Server.leastByteCount)
        take(bound.isShort ? shortage(bound) : nil)
    }

    private func take(_ shortage: StateError?) {
        guard (core.refusals.memoryShortage != nil) != (shortage != nil) else { return }
        keyspace.withCore { $0.refusals.memoryShortage = shortage }
        if let shortage {
            options.log(.error, shortage.message)
        } else {
            options.log(.notice, "there is memory again: keys can be set")
        }
    }

    private func shortage(_ bound: MemoryBound) -> StateError {
        StateError(
            .noSpace,
            "the daemon takes \(bound.description), and keeps \(bound.reservedByteCount >> 20) MiB for its next start: "
                + "no value is set that takes more; delete keys, or raise the limit"
        )
    }
}
