import CLinux
import Glibc
import StateServer

/// The kernel's limit of open files, which limits the clients.
enum DescriptorLimit {
    /// Files other than clients' sockets: the database, the listeners, those of the event loop.
    private static let reserve = 64
    private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Raises the limit so that `clientCount` clients fit, and makes the kernel's table as large.
    ///
    /// - Returns: How many fit.
    @discardableResult
    static func raise(forClients clientCount: Int) -> Int {
        let needed = rlim_t(clientCount + reserve)
        var limit = rlimit()
        guard getrlimit(openFiles, &limit) == 0 else { return clientCount }
        if limit.rlim_cur < needed {
            // Only a privileged process may raise the hard limit; the soft one goes as far as that.
            var raised = rlimit(rlim_cur: needed, rlim_max: max(limit.rlim_max, needed))
            if setrlimit(openFiles, &raised) != 0 {
                raised = rlimit(rlim_cur: min(limit.rlim_max, needed), rlim_max: limit.rlim_max)
                _ = setrlimit(openFiles, &raised)
            }
            guard getrlimit(openFiles, &limit) == 0 else { return clientCount }
        }
        clinux_reserve_descriptors(Int32(min(needed, limit.rlim_cur, 1 << 14)))
        return min(clientCount, max(1, Int(clamping: limit.rlim_cur) - reserve))
    }

    /// The same; logs a warning if fewer fit.
    static func raise(forClients clientCount: Int, log: Log) -> Int {
        let fitting = raise(forClients: clientCount)
        if fitting < clientCount {
            log.write(
                .warning,
                .limitReduced,
                "at most \(fitting) clients instead of \(clientCount): the limit of open files is "
                    + "\(fitting + reserve); raise LimitNOFILE or 'ulimit -n'"
            )
        }
        return fitting
    }
}
