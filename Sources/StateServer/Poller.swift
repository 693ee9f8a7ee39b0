import CLinux
import Glibc

/// epoll(7), level-triggered but for the wake-up, with a registration number beside each descriptor.
///
/// The number tells an event of a descriptor that was closed and given out again in the same turn from one of the new owner.
struct Poller: ~Copyable {
    struct Event {
        var token: UInt64
        var isReadable: Bool
        var isWritable: Bool
        var isHungUp: Bool
    }

    private let descriptor: Int32
    private let buffer = UnsafeMutablePointer<clinux_event>.allocate(capacity: Poller.capacity)
    private static let capacity = 256

    init() {
        descriptor = clinux_epoll_create()
        precondition(descriptor >= 0, "epoll_create1: \(String(cString: strerror(errno)))")
    }

    deinit {
        close(descriptor)
        buffer.deallocate()
    }

    static let readable = UInt32(CLINUX_EPOLLIN)
    static let writable = UInt32(CLINUX_EPOLLOUT)
    /// Readable, told once each time that it becomes so.
    static let readableOnce = readable | 1 << 31

    /// Adds a descriptor; false where the kernel has no room for more (ENOSPC, ENOMEM).
    func add(_ watched: Int32, _ interest: UInt32, token: UInt64) -> Bool {
        if clinux_epoll_add(descriptor, watched, interest, token) == 0 { return true }
        precondition(errno == ENOSPC || errno == ENOMEM, "epoll_ctl: descriptor \(watched)")
        return false
    }

    func modify(_ watched: Int32, _ interest: UInt32, token: UInt64) {
        let code = clinux_epoll_modify(descriptor, watched, interest, token)
        precondition(code == 0, "epoll_ctl: descriptor \(watched)")
    }

    func remove(_ watched: Int32) { clinux_epoll_remove(descriptor, watched) }

    /// Waits and calls `body` for each event.
    ///
    /// A negative timeout waits for ever.
    func wait(milliseconds: Int32, _ body: (Event) -> Void) {
        let count = clinux_epoll_wait(descriptor, buffer, Int32(Poller.capacity), milliseconds)
        guard count > 0 else { return }
        let failure = UInt32(CLINUX_EPOLLERR | CLINUX_EPOLLHUP)
        for index in 0..<Int(count) {
            let event = buffer[index]
            body(
                Event(
                    token: event.data,
                    isReadable: event.events & Poller.readable != 0,
                    isWritable: event.events & Poller.writable != 0,
                    isHungUp: event.events & failure != 0
                )
            )
        }
    }
}
