import Glibc
import StateEngine
import StateServer

/// Sockets that the service manager created and passed on.
///
/// `LISTEN_FDS` descriptors from 3 on, for the process that `LISTEN_PID` names
/// (https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html).
struct InheritedSockets {
    /// The name under which the service manager keeps what one process leaves to the next.
    static let handoverName = "stated-handover"
    private static let firstDescriptor: Int32 = 3

    var listening: [ListeningSocket] = []
    /// What the last process has left.
    var handedOver: [Int32] = []

    /// Takes the sockets, and unsets the variables, so that child processes do not use them.
    ///
    /// - Throws: ``StateError/Code/err`` if one of them is not a listening Unix socket.
    static func take() throws(StateError) -> InheritedSockets {
        defer { for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { unsetenv(name) } }
        guard Environment["LISTEN_PID"] == "\(getpid())",
            let count = Environment["LISTEN_FDS"].flatMap({ Int32($0) }), (1...64).contains(count)
        else { return InheritedSockets() }
        let names = Environment["LISTEN_FDNAMES"]?.split(
            separator: ":",
            omittingEmptySubsequences: false
        )
        var sockets = InheritedSockets()
        for index in 0..<count {
            let descriptor = firstDescriptor + index
            if let names, index < names.count, names[Int(index)] == handoverName {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                sockets.handedOver.append(descriptor)
            } else {
                sockets.listening.append(try ListeningSocket(inherited: descriptor))
            }
        }
        return sockets
    }
}
