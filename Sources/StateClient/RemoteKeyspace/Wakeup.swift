import CLinux
import Glibc

/// An eventfd(2): wakes a thread that waits for sockets.
struct Wakeup: ~Copyable, Sendable {
    private let descriptor: Int32

    /// nil if the process or the system has no file descriptor left.
    init?() {
        descriptor = clinux_eventfd()
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// May be called on any thread.
    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Waits for a signal, for bytes at `socket`, with `toSend` for room to send, or for the
    /// timeout.
    ///
    /// - Parameters:
    ///   - socket: A descriptor; -1 for none.
    ///   - toSend: Whether to wait for room to send, too.
    ///   - milliseconds: The timeout; below 0 for none.
    /// - Returns: Whether the socket is ready.
    func wait(socket: Int32, toSend: Bool, milliseconds: Int32) -> Bool {
        var waiting = (
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: Int16(toSend ? POLLIN | POLLOUT : POLLIN), revents: 0)
        )
        // An interruption counts as a timeout: the caller checks everything again.
        _ = withUnsafeMutableBytes(of: &waiting) {
            poll($0.baseAddress?.assumingMemoryBound(to: pollfd.self), 2, milliseconds)
        }
        if waiting.0.revents != 0 {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
        return waiting.1.revents != 0
    }
}
