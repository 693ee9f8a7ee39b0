import Glibc
import StateEngine
import StateServer

/// Sockets that the service manager created and passed on.
///
/// `LISTEN_FDS` descriptors from 3 on, for the process that `LISTEN_PID` names
/// (https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html).
enum InheritedSockets {
    private static let firstDescriptor: Int32 = 3

    /// Takes the sockets, and unsets the variables, so that child processes do not use them.
    ///
    /// - Throws: ``StateError/Code/err`` if one of them is not a listening Unix socket.
    static func take() throws(StateError) -> [ListeningSocket] {
        defer { for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { unsetenv(name) } }
        guard Environment["LISTEN_PID"] == "\(getpid())",
            let count = Environment["LISTEN_FDS"].flatMap({ Int32($0) }), (1...64).contains(count)
        else { return [] }
        var sockets: [ListeningSocket] = []
        for descriptor in firstDescriptor..<(firstDescriptor + count) {
            sockets.append(try ListeningSocket(inherited: descriptor))
        }
        return sockets
    }
}
