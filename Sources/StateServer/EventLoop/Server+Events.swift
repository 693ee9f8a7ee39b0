import CLinux
import Glibc
import Synchronization

/// Events of descriptors, and the order in which they are handled.
extension Server {
    /// Reserved tokens; connections have their numbers, from 1 on, shifted.
    enum Token {
        static let wakeup: UInt64 = 0
        static let signals: UInt64 = 1
        static let listener: UInt64 = 2
        static let connection: UInt64 = 3
        /// The second of the first kind: a process with a key has ended.
        static let process = make(wakeup, 1)

        static func make(_ kind: UInt64, _ number: Int) -> UInt64 { UInt64(number) << 2 | kind }

        /// The token of a connection: its number, and its descriptor in ``descriptorBits``, which
        /// finds it.
        static func make(for connection: Connection) -> UInt64 {
            make(Token.connection, connection.number << descriptorBits | Int(connection.descriptor))
        }

        /// No machine has memory for more open descriptors.
        private static let descriptorBits = 26

        /// The descriptor and the number in the token of a connection.
        static func parts(_ token: UInt64) -> (descriptor: Int, number: Int) {
            (Int(token >> 2) & (1 << descriptorBits - 1), Int(token >> (2 + descriptorBits)))
        }
    }

    func collectEvents(nanoseconds: Int64) {
        // Events for which a turn had no time join the new ones.
        let leftCount = unfinished.events.count
        poller.wait(nanoseconds: nanoseconds) { event in
            switch event.token & 3 {
            case Token.wakeup where event.token == Token.process: endProcesses()
            case Token.wakeup: turn.reasons.formUnion(wakeup.take())
            case Token.signals: take(signal: clinux_read_signal(signals.descriptor))
            default: unfinished.events.append(event)
            }
        }
        if leftCount > 0, unfinished.events.count > leftCount { mergeEvents(from: leftCount) }
    }

    /// Merges two events of the same descriptor into the first.
    private func mergeEvents(from start: Int) {
        let new = unfinished.events[start...]
        unfinished.events.removeSubrange(start...)
        var places: [UInt64: Int] = [:]
        for (index, event) in unfinished.events.enumerated() { places[event.token] = index }
        for event in new {
            if let place = places[event.token] {
                unfinished.events[place].merge(event)
            } else {
                unfinished.events.append(event)
            }
        }
    }

    /// Sorts the events in the order in which they would end if users shared the turn equally, by
    /// the recent cost of their events.
    ///
    /// So a burst of long events does not delay short ones of others. Users none of whose events was
    /// handled in the last turns come first: if the events themselves did, the many of one user would
    /// stay before all that come later.
    func orderEvents() {
        var taken: [UInt32: Int64] = [:]
        let ordered = unfinished.events.enumerated().map { index, event in
            // New clients come last.
            var due = Server.eventNanoseconds
            var (used, turnsWaited) = (0 as Int64, event.turnsWaited)
            if let account = connection(of: event)?.share.account {
                due = taken[account.uid] ?? 0
                due += min(account.eventNanoseconds, Server.eventNanoseconds)
                taken[account.uid] = due
                (used, turnsWaited) = (account.nanoseconds, account.turnsWaited)
            }
            due -= turnsWaited * Server.eventNanoseconds
            return (event, due: due, used: used, index)
        }
        unfinished.events = ordered.sorted { ($0.due, $0.used, $0.3) < ($1.due, $1.used, $1.3) }
            .map(\.0)
    }

    /// Counts the turn for the users and the new clients whose events wait, except those that it has
    /// served.
    func noteWaiting(besides served: Set<UInt32>) {
        var waiting = served
        for index in unfinished.events.indices {
            guard let account = connection(of: unfinished.events[index])?.share.account else {
                unfinished.events[index].turnsWaited += 1
                continue
            }
            if waiting.insert(account.uid).inserted { account.turnsWaited += 1 }
        }
    }

    func connection(of event: Poller.Event) -> Connection? {
        guard event.token & 3 == Token.connection else { return nil }
        let (descriptor, number) = Token.parts(event.token)
        return registry.connection(descriptor, number)
    }

    func handle(_ event: Poller.Event) {
        guard event.token & 3 == Token.connection else {
            accept(from: Int32(event.token >> 2))
            return
        }
        guard let connection = connection(of: event) else { return }
        if event.isReadable { history.thread?.activity.wrappingAdd(1, ordering: .relaxed) }
        // A client that has left may have sent commands before: they are read first, if possible.
        let mayRead =
            event.isReadable && connection.inbound.pause == nil && !connection.ending.isDue
        if event.isHungUp, !mayRead {
            // Its commands run first; then the event comes again.
            if connection.inbound.pause != .turnIsOver { leave(connection) }
        } else {
            if event.isWritable { flushes.add(connection) }
            if event.isReadable { receive(connection, hasEnded: event.hasEnded) }
        }
    }

    /// Postpones the event of a user who rests.
    ///
    /// - Returns: Whether it was postponed, or merged into a postponed one.
    func postpones(
        _ event: Poller.Event,
        of connection: Connection,
        _ account: ClientMemory.Account,
        _ now: Int64
    ) -> Bool {
        guard connection.inbound.postponedEvent != nil || isResting(account, at: now) else {
            return false
        }
        // Its commands still run, but reads of the history for it would only take memory.
        if event.isHungUp { history.endJobs(of: connection) }
        postpone(event, of: connection, account)
        return true
    }

    private func postpone(
        _ event: Poller.Event,
        of connection: Connection,
        _ account: ClientMemory.Account
    ) {
        guard connection.inbound.postponedEvent == nil else {
            connection.inbound.postponedEvent?.merge(event)
            return
        }
        connection.inbound.postponedEvent = event
        if account.postpone(connection) { unfinished.items.append(.events(account)) }
    }

    /// Events of one user beyond so many wait with the user, so that no turn puts them in order:
    /// beside 900 clients of another user, GETs of 10 clients had three times the p99.
    static let crowdCount = 64

    func postponeCrowds() {
        var counts: [UInt32: Int] = [:]
        unfinished.events.removeAll { event in
            guard let connection = connection(of: event), let account = connection.share.account
            else { return false }
            let count = counts[account.uid] ?? account.postponedCount
            guard count >= Server.crowdCount else {
                counts[account.uid] = count + 1
                return false
            }
            postpone(event, of: connection, account)
            return true
        }
    }
}

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

        /// Adds the conditions of a later event of the same descriptor.
        mutating func merge(_ event: Event) {
            isReadable = isReadable || event.isReadable
            isWritable = isWritable || event.isWritable
            isHungUp = isHungUp || event.isHungUp
            hasEnded = hasEnded || event.hasEnded
        }
    }

    let descriptor: Int32
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

/// Wakes the loop: an eventfd to which other threads write.
///
/// Whoever may wake the loop retains it, and the descriptor stays open as long. After closing, its
/// number could belong to another file, such as one of the store.
package final class Wakeup: Sendable {
    package let descriptor: Int32
    private let reasons = Atomic<UInt8>(0)

    /// Why the loop was woken.
    struct Reasons: OptionSet {
        let rawValue: UInt8
        static let storage = Reasons(rawValue: 1)
        static let history = Reasons(rawValue: 2)
        static let configuration = Reasons(rawValue: 4)
        /// Not a reason itself: the loop runs, and will take the others.
        fileprivate static let held = Reasons(rawValue: 8)
    }

    init() {
        descriptor = clinux_eventfd()
        precondition(descriptor >= 0, "eventfd: \(String(cString: strerror(errno)))")
    }

    deinit { close(descriptor) }

    /// Wakes the loop.
    ///
    /// The descriptor is edge-triggered, so nobody has to read it. If reasons are already waiting,
    /// nothing is written: the loop takes all of them.
    func wake(for reason: Reasons) {
        let (before, _) = reasons.bitwiseOr(reason.rawValue, ordering: .sequentiallyConsistent)
        guard before == 0 else { return }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Lets nobody write until the reasons are taken: the loop runs, and will take them.
    func hold() { _ = reasons.bitwiseOr(Reasons.held.rawValue, ordering: .sequentiallyConsistent) }

    /// Takes the reasons, once the descriptor is ready.
    func take() -> Reasons {
        Reasons(rawValue: reasons.exchange(0, ordering: .sequentiallyConsistent))
            .subtracting(.held)
    }
}
