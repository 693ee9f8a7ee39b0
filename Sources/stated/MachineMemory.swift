import Glibc
import StateEngine
import StateServer

/// How much memory there is for the daemon, how much of it is taken, and how much clients may take.
enum MachineMemory {
    /// The limit of memory that is reached first, and how much of it the process takes; nil if only the machine's memory limits it.
    ///
    /// - Complexity: Some files in /proc and /sys are read: 30 to 100 µs.
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

    /// What the process has in memory, in bytes.
    static var residentByteCount: Int { pages.resident }

    /// What clients may take, of what is asked for: a quarter of what there is at most.
    static func bound(_ byteCount: Int, log: Log) -> Int {
        let quarter = max(1 << 20, total / 4)
        if byteCount > quarter {
            log.write(
                .notice,
                "limits.memoryBytes is \(quarter) instead of \(byteCount): a quarter of the memory that there is, \(total) bytes"
            )
        }
        return min(byteCount, quarter)
    }

    /// The memory of the machine, or what the process may take of it.
    private static var total: Int {
        let machine = max(1 << 20, sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
        let bounds = groupBounds(0).map(\.byteCount)
        return min(machine, bounds.min() ?? machine, addressLimit ?? machine)
    }

    /// memory.max of the control group and of those above it (https://docs.kernel.org/admin-guide/cgroup-v2.html), as far as they
    /// can be read.
    private static func groupBounds(_ resident: Int) -> [MemoryBound] {
        let groups = FileLocks.text(of: "/proc/self/cgroup").split(separator: "\n")
        guard let line = groups.first(where: { $0.hasPrefix("0::/") }) else { return [] }
        var parts = line.dropFirst(4).split(separator: "/")
        var bounds: [MemoryBound] = []
        while true {
            let directory = "/sys/fs/cgroup/" + parts.map { $0 + "/" }.joined()
            // "max" is none.
            if let limit = Int(FileLocks.text(of: directory + "memory.max").filter(\.isNumber)) {
                // The kernel gives up pages of files before it ends a process.
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

    /// What RLIMIT_AS allows; nil for any amount.
    static var addressLimit: Int? {
        var limit = rlimit()
        // RLIM_INFINITY is the largest number.
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur < .max
        else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// Addresses and memory of this process, in bytes (proc_pid_statm(5)).
    private static var pages: (addresses: Int, resident: Int) {
        let numbers = FileLocks.text(of: "/proc/self/statm").split(separator: " ").prefix(2).map {
            (Int($0) ?? 0) * sysconf(Int32(_SC_PAGESIZE))
        }
        return numbers.count == 2 ? (numbers[0], numbers[1]) : (0, 0)
    }
}
