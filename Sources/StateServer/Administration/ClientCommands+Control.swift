import CLinux
import Glibc
import StateEngine
import StateWire

/// CLIENT KILL, PAUSE, UNBLOCK and REPLY: what one client does to others, and to its own replies.
extension ClientCommands {
    func list(
        _ filter: Command.ClientFilter,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        var text = ""
        for client in matches(of: filter, context).sorted(by: { $0.number < $1.number }) {
            text += line(client, context.time)
            try settings.options.checkReply(text.utf8.count)
        }
        context.output.writeBulk(text)
    }

    private func matches(
        of filter: Command.ClientFilter,
        _ context: borrowing CommandContext
    ) -> [Connection] {
        registry.connections.filter { other in
            guard context.maySee(other), !(filter.skipsSelf && other === context.connection) else {
                return false
            }
            let age = (context.time - other.connectedAt) / 1_000
            return filter.numbers?.contains(Int64(other.number)) ?? true
                && filter.address.map { $0.isEqual(to: other.address) } ?? true
                && filter.localAddress.map { $0.isEqual(to: other.localAddress) } ?? true
                && filter.user.map { $0.isEqual(to: "\(other.peer.uid)") } ?? true
                && filter.age.map { age >= $0 } ?? true
                && filter.type.map { other.isOf($0) } ?? true
        }
    }

    /// Ends connections; what waits to be sent to them is dropped, and commands that ran stay done.
    func kill(
        _ filter: Command.ClientFilter,
        isOld: Bool,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let found = matches(of: filter, context)
        guard !isOld || !found.isEmpty else { throw StateError(.err, "No such client") }
        for connection in found {
            connection.ending.isDue = true
            // The client that asks gets its reply.
            connection.ending.isKilled = connection !== context.connection
            flushes.add(connection)
        }
        if isOld {
            context.output.writeOK()
        } else {
            context.output.writeInteger(Int64(found.count))
        }
    }

    func pause(
        _ milliseconds: Int64,
        onlyWrites: Bool,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        try context.requireAdmin("CLIENT PAUSE")
        let now = SystemClock.monotonicMilliseconds()
        let (end, overflows) = now.addingReportingOverflow(milliseconds)
        registry.pause = ClientPause(
            end: overflows ? .max : end,
            // As in Redis, a pause of everything is not weakened.
            onlyWrites: onlyWrites && registry.pause?.onlyWrites != false
        )
        timers.set(.clientPause, at: registry.pause?.end)
        context.output.writeOK()
    }

    func unpause(_ context: borrowing CommandContext) throws(StateError) {
        try context.requireAdmin("CLIENT UNPAUSE")
        registry.pause = nil
        timers.set(.clientPause, at: nil)
        context.output.writeOK()
    }

    /// Ends the waiting of a STATE.CHANGES.
    func unblock(
        _ number: Int64,
        withError: Bool,
        _ context: borrowing CommandContext
    ) {
        guard let other = registry.all[Int(truncatingIfNeeded: number)], context.maySee(other),
            let blocked = other.inbound.blocked, blocked.isWaiting
        else { return context.output.writeInteger(0) }
        blocked.isUnblockedWithError = withError
        waiting.wake(blocked)
        context.output.writeInteger(1)
    }

    func setReplies(
        _ mode: Command.ReplyMode,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard !context.isExecuting else {
            throw StateError(.err, "CLIENT REPLY is not allowed inside MULTI")
        }
        switch mode {
        case .on:
            context.connection.session.silence = .none
            context.output.writeOK()
        case .off: context.connection.session.silence = .all
        case .skip:
            if context.connection.session.silence != .all {
                context.connection.session.silence = .afterThis
            }
        }
    }
}

/// CLIENT PAUSE.
struct ClientPause {
    /// On the monotonic clock, in milliseconds.
    let end: Int64
    let onlyWrites: Bool

    /// Whether a command has to wait.
    func holds(_ verb: Verb, _ transaction: QueuedTransaction?) -> Bool {
        guard verb.name != .client, SystemClock.monotonicMilliseconds() < end else { return false }
        guard onlyWrites else { return true }
        if verb.isExecution { return transaction?.hasWrites ?? false }
        return transaction == nil && (verb.isWrite || verb.name == .publish)
    }
}

extension Connection {
    /// The path of the socket and the pid of the client, where Redis has an address and a port.
    var address: String { "\(path):\(peer.pid)" }

    /// The path of the socket, where Redis has its own address.
    var localAddress: String { "\(path):0" }

    private var path: String { sockaddr_un.path(boundTo: descriptor) ?? "" }

    fileprivate func isOf(_ type: Command.ClientType) -> Bool {
        switch type {
        case .normal: !session.isSubscribed
        case .subscriber: session.isSubscribed
        case .none: false
        }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func isEqual(to text: String) -> Bool {
        var text = text
        return text.withUTF8 { isEqual(to: Bytes($0)) }
    }
}
