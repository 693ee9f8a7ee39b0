import CLinux
import Glibc

/// An eventfd(2): wakes a thread that waits for sockets.
struct Wakeup: ~Copyable, Sendable {
    private let descriptor: Int32

    /// nil where the process or the machine has no descriptor left.
    init?() {
        descriptor = clinux_eventfd()
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// Any thread's.
    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Waits until it is signalled, bytes arrive at `socket` or, where `toSend`, can leave it, or the time is over.
    ///
    /// - Parameters:
    ///   - socket: A descriptor; -1 for none.
    ///   - toSend: Whether to wait for room to send, too.
    ///   - milliseconds: Below 0 for as long as it takes.
    /// - Returns: Whether there is something to do at the socket.
    func wait(socket: Int32, toSend: Bool, milliseconds: Int32) -> Bool {
        var waiting = (
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: Int16(toSend ? POLLIN | POLLOUT : POLLIN), revents: 0)
        )
        // Interrupted, it is as if the time were over: who waits looks at everything again.
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
