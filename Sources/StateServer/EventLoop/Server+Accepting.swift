import CLinux
import Glibc
import StateEngine
import StateWire

/// Clients that come, and why one may not.
extension Server {
    /// Accepts clients for one slice, or one client if there is more than one user: the listener says again that there are more.
    ///
    /// 20 clients in a row, each of whom sends and leaves, took 1 ms. `accepted` is the last one: the time of the turn is charged
    /// to its user.
    func accept(from listener: Int32) {
        accepted = nil
        var isFirst = true
        let isAlone = registry.memory.userCount <= 1
        while isFirst || isAlone && clinux_monotonic_nanoseconds() < sliceEnd {
            isFirst = false
            let descriptor = clinux_accept(listener)
            if descriptor >= 0 {
                add(descriptor)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                noteMissingDescriptors()
                guard refuseNext(of: listener) else { return }
            default: return
            }
        }
    }

    private func add(_ descriptor: Int32) {
        let connection = Connection(
            descriptor: descriptor,
            number: registry.takeNumber(),
            limits: options.frameLimits,
            subjects: &registry.subjects,
            at: dispatcher.now
        )
        do throws(StateError) {
            try checkPlaces(for: connection)
            try keyspace.withCore { (core) throws(StateError) in
                try dispatcher.checkConnections(of: connection.peer.uid, core)
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
        accepted = connection
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
        dispatcher.repeated.write(
            .init(subject: .descriptors),
            .warning,
            at: SystemClock.monotonicMilliseconds(),
            to: options.log
        ) {
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
            if acceptAt == nil {
                for listener in listeners { poller.remove(listener) }
            }
            acceptAt = SystemClock.monotonicMilliseconds() + Server.retryMilliseconds
            return false
        }
    }

    /// Looks for clients again: a descriptor is free, or it is time to see whether one is.
    func acceptAgain(isFree: Bool = false) {
        guard let due = acceptAt, isFree || SystemClock.monotonicMilliseconds() >= due else {
            return
        }
        acceptAt = nil
        for listener in listeners { watchListener(listener) }
    }
}
