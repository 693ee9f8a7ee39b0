import CLinux
import Glibc

/// epoll over descriptors with numbers.
final class Poller {
    private let descriptor: Int32
    private var events = Array(repeating: clinux_event(), count: 256)

    init() throws(BenchError) {
        descriptor = clinux_epoll_create()
        guard descriptor >= 0 else { throw .system("epoll_create1") }
    }

    deinit { close(descriptor) }

    func add(_ watched: Int32, number: Int) throws(BenchError) {
        guard clinux_epoll_add(descriptor, watched, UInt32(CLINUX_EPOLLIN), UInt64(number)) == 0
        else { throw .system("epoll_ctl") }
    }

    /// Sets whether to wait for room to write too.
    func change(_ watched: Int32, number: Int, writable: Bool) throws(BenchError) {
        let events = UInt32(CLINUX_EPOLLIN) | (writable ? UInt32(CLINUX_EPOLLOUT) : 0)
        guard clinux_epoll_modify(descriptor, watched, events, UInt64(number)) == 0
        else { throw .system("epoll_ctl") }
    }

    func remove(_ watched: Int32) { _ = clinux_epoll_remove(descriptor, watched) }

    /// Waits until something is ready; passes on each number, and whether it is writable.
    ///
    /// - Returns: False after a timeout.
    @discardableResult
    func wait(
        milliseconds: Int32 = -1,
        _ body: (Int, Bool) throws(BenchError) -> Void
    ) throws(BenchError) -> Bool {
        let count = clinux_epoll_wait(
            descriptor,
            &events,
            Int32(events.count),
            Int64(milliseconds) * 1_000_000
        )
        guard count >= 0 || errno == EINTR else { throw .system("epoll_wait") }
        for index in 0..<max(0, Int(count)) {
            let event = events[index]
            try body(Int(event.data), event.events & UInt32(CLINUX_EPOLLOUT) != 0)
        }
        return count != 0
    }
}
