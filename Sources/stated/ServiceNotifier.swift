import Glibc
import StateServer
import StateWire

/// Reports the daemon's state to the service manager: datagrams of `NAME=value` lines to
/// `$NOTIFY_SOCKET`.
///
/// The protocol: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
struct ServiceNotifier: Sendable {
    private let address: sockaddr_un
    /// Bytes of an abstract name, including its leading NUL; nil for a path.
    private let nameByteCount: Int?

    /// Nil if no service manager asks for reports.
    init?() {
        guard let name = Environment["NOTIFY_SOCKET"] else { return nil }
        var bytes = Array(name.utf8)
        let isAbstract = bytes[0] == UInt8(ascii: "@")
        guard isAbstract || bytes[0] == UInt8(ascii: "/"),
            bytes.count <= SocketLocation.pathByteLimit
        else { return nil }
        if isAbstract { bytes[0] = 0 }
        address = sockaddr_un(name: bytes)
        nameByteCount = isAbstract ? bytes.count : nil
    }

    /// How long the service manager waits for a sign of life; nil if it expects none of this process.
    ///
    /// https://www.freedesktop.org/software/systemd/man/latest/sd_watchdog_enabled.html
    static var watchdogInterval: Duration? {
        guard let microseconds = Environment["WATCHDOG_USEC"].flatMap({ Int64($0) }),
            microseconds > 0
        else { return nil }
        let process = Environment["WATCHDOG_PID"]
        guard process == nil || process == String(getpid()) else { return nil }
        return .microseconds(microseconds)
    }

    /// Sends the lines as one datagram.
    ///
    /// Errors are ignored: the manager may be gone.
    func send(_ lines: String...) {
        let flags = O_CLOEXEC  // The value of SOCK_CLOEXEC on Linux.
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | flags, 0)
        guard socket >= 0 else { return }
        defer { close(socket) }
        let text = lines.joined(separator: "\n")
        _ = address.withAddress(nameByteCount: nameByteCount) {
            sendto(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL), $0, $1)
        }
    }
}
