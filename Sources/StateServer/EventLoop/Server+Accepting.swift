import CLinux
import Glibc
import StateEngine
import StateWire

/// A listener that is not looked at for a while, since a client has just come and others are being served.
///
/// 20 clients in a row, each of whom sends and leaves, took 1 ms of the loop without a pause.
struct Arrivals {
    /// Whose client it was.
    let account: ClientMemory.Account
    let listener: Int32
    /// On the monotonic clock, in nanoseconds.
    let restEnd: Int64

    init(of account: ClientMemory.Account, on listener: Int32, restEnd: Int64) {
        (self.account, self.listener, self.restEnd) = (account, listener, restEnd)
    }

    /// Others who connect wait as well, so it is short.
    static let longestRest: Int64 = 300_000
}

/// Clients that come, and why one may not.
extension Server {
    /// Accepts clients for one slice, or one client if there is more than one user; then the listener rests.
    ///
    /// `accepted` is the last one: the time of the turn is charged to its user.
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

    /// Goes on with a listener that has rested.
    ///
    /// It is watched again first: whatever becomes of the next client, only another rest ends that. Without descriptors all are
    /// watched again once there are some, and none when the daemon stops.
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
            try checkPlaces(for: connection)
            try keyspace.withCore { (core) throws(StateError) in
                try services.quotas.checkConnections(of: connection.peer.uid, core)
            }
        } catch {
            refuse(descriptor, error)
            return
        }
        let token = Token.make(Token.connection, connection.number)
        guard poller.add(descriptor, connection.interest, token: token) else {
            close(descriptor)
            return
        }
        registry.add(connection)
        turn.accepted = connection
    }

    /// Refuses a client where there are as many as may be, or as many of its user; root and the daemon's own user have
    /// places that nobody else can take.
    private func checkPlaces(for connection: Connection) throws(StateError) {
        let limit = options.clientCount
        guard !connection.subject.isPrivileged else {
            guard registry.count >= limit + ServerOptions.reservedClientCount else { return }
            throw StateError(.limit, "max number of clients reached: \(limit)")
        }
        let uid = connection.peer.uid
        guard registry.count < limit else {
            throw StateError(.limit, "max number of clients reached: \(limit)")
        }
        let share = max(1, limit / 4 * 3)
        guard registry.memory.connectionCount(of: uid) < share else {
            throw StateError(
                .limit,
                "uid \(uid) has \(share) clients, as many as one user may have of limits.clients, \(limit)"
            )
        }
    }

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
            "no more file descriptors: new clients are refused until there are; raise the limit of open files "
                + "(LimitNOFILE=) or lower limits.clients"
        }
    }

    /// Refuses the client that comes next, with the descriptor that is kept back for that.
    ///
    /// - Returns: Whether the next may be looked for. Where not even that one is to be had, nobody is accepted until a connection
    ///   ends or some time is over: a listener that cannot be accepted from would be told as ready for ever.
    private func refuseNext(of listener: Int32) -> Bool {
        var failure: Int32 = 0
        let isLent = reserve.lend {
            let descriptor = clinux_accept(listener)
            failure = descriptor >= 0 ? 0 : errno
            guard descriptor >= 0 else { return }
            refuse(
                descriptor,
                StateError(.limit, "the daemon has no more file descriptors; try again later")
            )
        }
        switch isLent ? failure : EMFILE {
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

    /// Looks for clients again: a descriptor is free, or it is time to see whether one is.
    func acceptAgain() {
        timers.set(.acceptance, at: nil)
        for listener in listeners { watchListener(listener) }
    }
}
