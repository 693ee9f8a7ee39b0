import CLinux
import StatePlatform

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
        clinux_signal_event(descriptor)
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
        if waiting.0.revents != 0 { clinux_clear_event(descriptor) }
        return waiting.1.revents != 0
    }
}
