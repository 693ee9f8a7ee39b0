import CLinux
import Glibc
import StateEngine
import StateServer

/// How much memory the daemon may use, how much it uses, and how much clients may take.
enum MachineMemory {
    /// The memory limit that is reached first, and how much of it the process uses; nil if only the
    /// machine's memory limits it.
    ///
    /// - Complexity: It reads some files in /proc and /sys: 30 to 100 µs.
    static var tightest: MemoryBound? {
        let (addresses, resident) = pages
        var bounds = groupBounds(resident)
        if let limit = addressLimit {
            bounds.append(
                MemoryBound(name: "ulimit -v", byteCount: limit, usedByteCount: addresses)
            )
        }
        return bounds.min { $0.freeByteCount < $1.freeByteCount }
    }

    /// The same, but memory that was freed does not count as used: it is rarely returned to the kernel,
    /// and new values take it.
    ///
    /// - Complexity: It walks the heap if memory is short.
    static var tightestForValues: MemoryBound? {
        var bound = tightest
        if bound?.isShort ?? false { bound?.usedByteCount -= clinux_free_heap_byte_count() }
        return bound
    }

    /// What work that ends soon may take beside the values, of a limit and of what the machine has left.
    ///
    /// - Parameter byteCount: What values will take before that.
    /// - Returns: Bytes; 0 if there is no more than the reserve.
    /// - Complexity: As ``tightest``.
    static func spareByteCount(besides byteCount: Int) -> Int {
        let machine = MemoryBound(meminfo: FileLocks.text(of: "/proc/meminfo"))
        return min(
            tightest?.spareByteCount(besides: byteCount) ?? .max,
            machine.spareByteCount(besides: byteCount)
        )
    }

    /// The resident memory of the process, in bytes.
    static var residentByteCount: Int { pages.resident }

    /// How much memory clients may take: `byteCount`, but at most a quarter of the memory.
    static func bound(_ byteCount: Int, log: Log) -> Int {
        let quarter = max(1 << 20, total / 4)
        if byteCount > quarter {
            log.write(
                .notice,
                .limitReduced,
                "limits.memoryBytes is reduced from \(byteCount) to \(quarter): a quarter of the "
                    + "available memory, \(total) bytes"
            )
        }
        return min(byteCount, quarter)
    }

    /// The memory of the machine, or the part that the process may use.
    private static var total: Int {
        let machine = max(1 << 20, sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
        let bounds = groupBounds(0).map(\.byteCount)
        return min(machine, bounds.min() ?? machine, addressLimit ?? machine)
    }

    /// memory.max of the control group and of those above it
    /// (https://docs.kernel.org/admin-guide/cgroup-v2.html), if they can be read.
    private static func groupBounds(_ resident: Int) -> [MemoryBound] {
        let groups = FileLocks.text(of: "/proc/self/cgroup").split(separator: "\n")
        guard let line = groups.first(where: { $0.hasPrefix("0::/") }) else { return [] }
        var parts = line.dropFirst(4).split(separator: "/")
        var bounds: [MemoryBound] = []
        while true {
            let directory = "/sys/fs/cgroup/" + parts.map { $0 + "/" }.joined()
            // "max" is no limit.
            if let limit = Int(FileLocks.text(of: directory + "memory.max").filter(\.isNumber)) {
                // The kernel frees file pages before it kills a process, so they do not count.
                let anonymous = FileLocks.text(of: directory + "memory.stat").split(separator: "\n")
                    .first {
                        $0.hasPrefix("anon ")
                    }
                let used = anonymous.flatMap { Int($0.dropFirst(5)) } ?? 0
                bounds.append(
                    MemoryBound(
                        name: "memory.max of \(directory)",
                        byteCount: limit,
                        usedByteCount: max(used, resident)
                    )
                )
            }
            guard parts.popLast() != nil else { return bounds }
        }
    }

    /// RLIMIT_AS; nil if there is no limit.
    static var addressLimit: Int? {
        var limit = rlimit()
        // RLIM_INFINITY is the largest number of its type.
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur < .max
        else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// The address space and the resident memory of this process, in bytes (proc_pid_statm(5)).
    private static var pages: (addresses: Int, resident: Int) {
        let numbers = FileLocks.text(of: "/proc/self/statm").split(separator: " ").prefix(2).map {
            (Int($0) ?? 0) * sysconf(Int32(_SC_PAGESIZE))
        }
        return numbers.count == 2 ? (numbers[0], numbers[1]) : (0, 0)
    }
}
