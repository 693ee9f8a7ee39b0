import CLinux
import Glibc

/// epoll(7), with a registration number for each descriptor.
///
/// Connections are edge-triggered: an event comes once when bytes arrive, and the next wait does
/// not check them again, as it does level-triggered descriptors. Whoever leaves input unread calls
/// ``modify(_:_:token:)``.
///
/// The number distinguishes an event of a closed descriptor from one of its new owner in the same
/// turn.
struct Poller: ~Copyable {
    struct Event {
        var token: UInt64
        var isReadable: Bool
        var isWritable: Bool
        var isHungUp: Bool
        /// The peer sends no more: after the available bytes the stream ends.
        var hasEnded: Bool
        /// How many turns had no time for it.
        var turnsWaited: Int64 = 0
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

    /// Something to accept or to read; reported as long as it is there.
    static let readable = UInt32(CLINUX_EPOLLIN)
    private static let once: UInt32 = 1 << 31
    /// Something to read; reported each time that something arrives.
    static let readableOnce = readable | UInt32(CLINUX_EPOLLRDHUP) | once
    /// Room to write; reported each time that there is more.
    static let writableOnce = UInt32(CLINUX_EPOLLOUT) | once

    /// Adds a descriptor.
    ///
    /// Returns false if the kernel has no room for more (ENOSPC, ENOMEM).
    func add(_ watched: Int32, _ interest: UInt32, token: UInt64) -> Bool {
        if clinux_epoll_add(descriptor, watched, interest, token) == 0 { return true }
        precondition(errno == ENOSPC || errno == ENOMEM, "epoll_ctl: descriptor \(watched)")
        return false
    }

    /// Changes the events of a descriptor; a condition that already holds is reported again.
    func modify(_ watched: Int32, _ interest: UInt32, token: UInt64) {
        let code = clinux_epoll_modify(descriptor, watched, interest, token)
        precondition(code == 0, "epoll_ctl: descriptor \(watched)")
    }

    func remove(_ watched: Int32) { clinux_epoll_remove(descriptor, watched) }

    /// Waits and calls `body` for each event.
    ///
    /// A negative timeout waits forever.
    func wait(nanoseconds: Int64, _ body: (Event) -> Void) {
        let count = clinux_epoll_wait(descriptor, buffer, Int32(Poller.capacity), nanoseconds)
        guard count > 0 else { return }
        let failure = UInt32(CLINUX_EPOLLERR | CLINUX_EPOLLHUP)
        for index in 0..<Int(count) {
            let event = buffer[index]
            body(
                Event(
                    token: event.data,
                    isReadable: event.events & Poller.readable != 0,
                    isWritable: event.events & UInt32(CLINUX_EPOLLOUT) != 0,
                    isHungUp: event.events & failure != 0,
                    hasEnded: event.events & (failure | UInt32(CLINUX_EPOLLRDHUP)) != 0
                )
            )
        }
    }
}
