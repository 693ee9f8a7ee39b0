import CLinux
import Glibc
import StateServer

/// The kernel's bound on open files, which bounds the clients.
enum DescriptorLimit {
    /// Files beside the clients' sockets: the database, the listeners, the loop's own.
    private static let reserve = 64
    private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Raises the limit so that `clientCount` clients fit.
    ///
    /// - Returns: How many fit; fewer than asked is a warning in the log.
    static func raise(forClients clientCount: Int, log: Log) -> Int {
        let wanted = rlim_t(clientCount + reserve)
        var limit = rlimit()
        guard getrlimit(openFiles, &limit) == 0 else { return clientCount }
        if limit.rlim_cur < wanted {
            // Only a privileged process may raise the hard limit; the soft one goes as far as that.
            var raised = rlimit(rlim_cur: wanted, rlim_max: max(limit.rlim_max, wanted))
            if setrlimit(openFiles, &raised) != 0 {
                raised = rlimit(rlim_cur: min(limit.rlim_max, wanted), rlim_max: limit.rlim_max)
                _ = setrlimit(openFiles, &raised)
            }
            guard getrlimit(openFiles, &limit) == 0 else { return clientCount }
        }
        clinux_reserve_descriptors(Int32(min(wanted, limit.rlim_cur, 1 << 14)))
        let fitting = min(clientCount, max(1, Int(clamping: limit.rlim_cur) - reserve))
        if fitting < clientCount {
            log.write(
                .warning,
                "room for \(fitting) clients instead of \(clientCount): the limit of open files is "
                    + "\(limit.rlim_cur)"
            )
        }
        return fitting
    }
}
