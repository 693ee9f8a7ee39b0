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

    /// What a machine has left; nothing if it does not say.
    ///
    /// - Parameter meminfo: The text of `/proc/meminfo` (proc_meminfo(5)).
    package init(meminfo: String) {
        let lines = meminfo.split(separator: "\n")
        func byteCount(_ name: String) -> Int {
            let line = lines.first { $0.hasPrefix(name) }
            let kibibytes = line.flatMap { Int($0.filter { $0.isNumber }) } ?? 0
            return kibibytes << 10
        }
        let (total, available) = (byteCount("MemTotal:"), byteCount("MemAvailable:"))
        self.init(name: "/proc/meminfo", byteCount: total, usedByteCount: total - available)
    }

    package var freeByteCount: Int { byteCount - usedByteCount }
    /// The reserve for buffers and for the next start, which needs more than a running daemon.
    package var reservedByteCount: Int { max(32 << 20, byteCount / 8) }
    /// What work that ends soon may take: of the rest, values take the most.
    ///
    /// - Parameter byteCount: What will be taken before that.
    /// - Returns: Bytes; 0 if there is no more than the reserve.
    package func spareByteCount(besides byteCount: Int = 0) -> Int {
        max(0, (freeByteCount - reservedByteCount - byteCount) / 4)
    }
    /// Whether no more values may be added.
    package var isShort: Bool { freeByteCount < reservedByteCount }

    package var description: String {
        "\(usedByteCount >> 20) MiB of the \(byteCount >> 20) MiB of memory that \(name) allows"
    }

    /// The refusal of values of so many more bytes; nil if there is room for them.
    package func shortage(adding byteCount: Int = 0) -> StateError? {
        guard freeByteCount - byteCount < reservedByteCount else { return nil }
        return StateError(
            .noSpace,
            "memory is short: the daemon takes \(description), of which it reserves "
                + "\(reservedByteCount >> 20) MiB; values that need more are refused; delete keys or "
                + "raise the limit"
        )
    }
}
