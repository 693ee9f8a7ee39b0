import Glibc
import StateServer

/// How much memory there is for the daemon, and how much of it clients may take.
enum MachineMemory {
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

    /// The memory of the machine, or what the control groups of this process leave of it.
    private static var total: Int {
        let machine = max(1 << 20, sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)))
        return min(machine, groupLimit ?? machine)
    }

    /// The smallest memory.max of the control group and those above it (https://docs.kernel.org/admin-guide/cgroup-v2.html); nil if
    /// there is none, or it cannot be read.
    private static var groupLimit: Int? {
        let groups = text(of: "/proc/self/cgroup").split(separator: "\n")
        guard let line = groups.first(where: { $0.hasPrefix("0::/") }) else { return nil }
        var parts = line.dropFirst(4).split(separator: "/")
        var least: Int?
        while true {
            let path = "/sys/fs/cgroup/" + parts.map { $0 + "/" }.joined() + "memory.max"
            // "max" is none.
            if let limit = Int(text(of: path).filter(\.isNumber)) {
                least = min(least ?? limit, limit)
            }
            guard parts.popLast() != nil else { return least }
        }
    }

    /// The beginning of a file; nothing if it cannot be read.
    private static func text(of path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
            let count = read(file, buffer.baseAddress, buffer.count)
            return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
        }
    }
}
