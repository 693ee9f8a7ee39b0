import CLinux
import Glibc
import StateEngine
import StateWire

/// A listener that pauses, because a client has just connected and others are being served.
///
/// 20 clients in a row that each sent a command and left took 1 ms of the loop without a pause.
struct Arrivals {
    /// The account of that client.
    let account: ClientMemory.Account
    let listener: Int32
    /// On the monotonic clock, in nanoseconds.
    let restEnd: Int64

    init(of account: ClientMemory.Account, on listener: Int32, restEnd: Int64) {
        (self.account, self.listener, self.restEnd) = (account, listener, restEnd)
    }

    /// Short, because others who connect have to wait, too.
    static let longestRest: Int64 = 300_000
}

/// Accepting and refusing clients.
extension Server {
    /// Accepts clients from a bound, listening, non-blocking socket, which its creator closes.
    package func listen(on descriptor: Int32) {
        listeners.append(descriptor)
        watchListener(descriptor)
    }

    /// Polls a listener, whether or not it is polled already.
    func watchListener(_ descriptor: Int32) {
        poller.remove(descriptor)
        let token = Token.make(Token.listener, Int(descriptor))
        _ = poller.add(descriptor, Poller.readable, token: token)
    }

    /// Accepts clients for one slice, or one client if there is more than one user; then the
    /// listener rests.
    ///
    /// ``Turn/accepted`` is the last one: its user is charged for the time of the turn.
    func accept(from listener: Int32) {
        turn.accepted = nil
        guard registry.memory.userCount > 1 else {
            while acceptNext(from: listener), clinux_monotonic_nanoseconds() < turn.sliceEnd {}
            return
        }
        let start = clinux_monotonic_nanoseconds()
        guard acceptNext(from: listener), let account = turn.accepted?.share.account else { return }
        poller.remove(listener)
        let now = clinux_monotonic_nanoseconds()
        let rest = min(Arrivals.longestRest, 3 * (now - start))
        unfinished.items.append(.arrivals(Arrivals(of: account, on: listener, restEnd: now + rest)))
    }

    /// Continues with a listener after its pause.
    ///
    /// First the listener is polled again; only another pause ends that. If descriptors ran out,
    /// all listeners are polled again once there are some. When the daemon stops, none is.
    func goOn(with arrivals: Arrivals) {
        turn.accepted = nil
        guard listeners.contains(arrivals.listener), !timers.isSet(.acceptance) else { return }
        watchListener(arrivals.listener)
        accept(from: arrivals.listener)
    }

    /// - Returns: Whether there may be more: a client was accepted, or refused.
    private func acceptNext(from listener: Int32) -> Bool {
        while true {
            let descriptor = clinux_accept(listener)
            if descriptor >= 0 {
                add(descriptor)
                return true
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                noteMissingDescriptors()
                return refuseNext(of: listener)
            default: return false
            }
        }
    }

    private func add(_ descriptor: Int32) {
        let connection = Connection(
            descriptor: descriptor,
            number: registry.takeNumber(),
            limits: options.frameLimits,
            subjects: &registry.subjects,
            at: turn.time
        )
        do throws(StateError) {
            try admit(connection)
        } catch {
            refuse(descriptor, error)
            return
        }
        turn.accepted = connection
    }

    /// Serves a connection from now on, if there is a place for it.
    ///
    /// - Throws: ``StateError/Code/limit`` or ``StateError/Code/err``; nothing has changed.
    func admit(_ connection: Connection) throws(StateError) {
        try checkPlaces(for: connection)
        try keyspace.withCore { (core) throws(StateError) in
            try services.quotas.checkConnections(of: connection.peer.uid, core)
        }
        let token = Token.make(for: connection)
        guard poller.add(connection.descriptor, connection.interest, token: token) else {
            throw StateError(
                .limit,
                "the kernel has no memory for one more client; try again later"
            )
        }
        connection.holders = ConnectionHolders(connection, services.lifetimes, core)
        registry.add(connection)
    }

    /// Refuses a client if there are too many clients, or too many of its user.
    ///
    /// Root and the daemon's own user have reserved places.
    private func checkPlaces(for connection: Connection) throws(StateError) {
        let limit = options.clientCount
        guard !connection.subject.isPrivileged else {
            guard registry.count >= limit + ServerOptions.reservedClientCount else { return }
            throw Server.tooManyClients
        }
        let uid = connection.peer.uid
        guard registry.count + services.lifetimes.processCount < limit else {
            throw Server.tooManyClients
        }
        let share = max(1, limit / 4 * 3)
        let processCount = services.lifetimes.processCount(of: uid)
        guard registry.memory.connectionCount(of: uid) + processCount < share else {
            throw StateError(
                .limit,
                "uid \(uid) has \(share) clients, the limit of one user: three quarters of "
                    + "limits.clients, \(limit)"
            )
        }
    }

    /// In the words of Redis, which clients look for.
    private static let tooManyClients = StateError(.err, "max number of clients reached")

    private func refuse(_ descriptor: Int32, _ error: StateError) {
        var reply = ByteBuffer()
        reply.writeError(error)
        let bytes = reply.bytes
        _ = send(
            descriptor,
            bytes.baseAddress,
            bytes.count,
            Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        )
        close(descriptor)
    }

    // MARK: Without descriptors

    private static let retryMilliseconds: Int64 = 100

    private func noteMissingDescriptors() {
        services.gate.write(.init(subject: .descriptors), .warning) {
            let text =
                "no more file descriptors: new clients are refused until some are free; raise the "
                + "limit of open files (LimitNOFILE=) or lower limits.clients"
            return (text, [])
        }
    }

    /// Refuses the next client, with the reserved descriptor.
    ///
    /// - Returns: Whether there may be more clients. If not even the reserve is available, nobody
    ///   is accepted until a connection ends or some time has passed: epoll would otherwise report
    ///   the listener forever.
    private func refuseNext(of listener: Int32) -> Bool {
        var failure: Int32 = 0
        let isFreed = reserve.withFreed {
            let descriptor = clinux_accept(listener)
            failure = descriptor >= 0 ? 0 : errno
            guard descriptor >= 0 else { return }
            refuse(
                descriptor,
                StateError(.limit, "the daemon has no more file descriptors; try again later")
            )
        }
        switch isFreed ? failure : EMFILE {
        case 0, EINTR, ECONNABORTED: return true
        case EAGAIN: return false
        default:
            if !timers.isSet(.acceptance) {
                for listener in listeners { poller.remove(listener) }
            }
            let now = SystemClock.monotonicMilliseconds()
            timers.set(.acceptance, at: now + Server.retryMilliseconds)
            return false
        }
    }

    /// Accepts clients again: a descriptor is free, or it is time to check whether one is.
    func acceptAgain() {
        timers.set(.acceptance, at: nil)
        for listener in listeners { watchListener(listener) }
    }
}
