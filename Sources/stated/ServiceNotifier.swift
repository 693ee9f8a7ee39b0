import CLinux
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
    /// Errors are ignored: the manager may be gone. If it takes no message, this waits at most so many
    /// milliseconds for that.
    func send(_ lines: String..., within milliseconds: Int = patience) {
        _ = send(lines, [], within: milliseconds)
    }

    /// Says that the loop still serves.
    ///
    /// The next one is as good as one that the manager does not take: nobody waits for it.
    func sendSignOfLife() { send("WATCHDOG=1", within: 0) }

    /// - Returns: Whether it was sent.
    private func send(
        _ lines: [String],
        _ descriptors: [Int32],
        within milliseconds: Int = patience
    ) -> Bool {
        // The values of SOCK_CLOEXEC and SOCK_NONBLOCK on Linux.
        let flags = milliseconds > 0 ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | flags, 0)
        guard socket >= 0 else { return false }
        defer { close(socket) }
        var time = timeval(
            tv_sec: milliseconds / 1_000,
            tv_usec: __suseconds_t(milliseconds % 1_000 * 1_000)
        )
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, size)
        let text = lines.joined(separator: "\n")
        let (count, most) = (text.utf8.count, Int32(descriptors.count))
        return address.withAddress(nameByteCount: nameByteCount) {
            clinux_send_descriptors(socket, $0, $1, text, count, descriptors, most)
        } == count
    }

    // MARK: Descriptors for the next process

    /// Whether the manager keeps descriptors for this service (`FileDescriptorStoreMax=`).
    ///
    /// systemd says so in this variable from version 254 on; before, the unit does.
    static var keepsDescriptors: Bool { Environment["FDSTORE"].flatMap { Int($0) } ?? 0 > 0 }

    /// How long the manager has for taking a message, in milliseconds.
    private static let patience = 500
    /// The same for the first one, without which the manager takes the start for a failure.
    static let patienceAtStart = 60_000

    /// Has the manager keep descriptors, and waits until it has them.
    ///
    /// - Returns: Whether it was asked to.
    func keep(_ descriptors: [Int32]) -> Bool {
        // Without FDPOLL=0, it would watch them and drop one whose peer is gone.
        let lines = ["FDSTORE=1", "FDNAME=\(InheritedSockets.handoverName)", "FDPOLL=0"]
        guard send(lines, descriptors) else { return false }
        waitUntilTaken()
        return true
    }

    /// The manager need not keep them any more.
    func forgetDescriptors() {
        send("FDSTOREREMOVE=1", "FDNAME=\(InheritedSockets.handoverName)")
    }

    /// Waits until the manager has taken all messages so far: it closes the descriptor that it gets
    /// with the last one (sd_notify_barrier(3)).
    private func waitUntilTaken() {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | O_CLOEXEC
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return }
        defer { close(ends[0]) }
        let isSent = send(["BARRIER=1"], [ends[1]])
        close(ends[1])
        guard isSent else { return }
        var end = pollfd(fd: ends[0], events: 0, revents: 0)
        _ = poll(&end, 1, Int32(ServiceNotifier.patience))
    }
}
