import CLinux
import Glibc
import StateEngine
import StateWire

/// CLIENT KILL, PAUSE, UNBLOCK and REPLY: what one client does to others, and to its own replies.
extension ClientCommands {
    func list(
        _ filter: Command.ClientFilter,
        _ context: inout CommandContext
    ) throws(StateError) {
        let (asking, time, isAdmin) = (context.connection, context.time, context.isAdmin)
        let filter = ClientFilter(filter)
        let listing = ConnectionListing(
            registry,
            byteLimit: settings.options.replyByteCount,
            visitLimit: context.execution?.visitsLeft ?? .max,
            advice: "name fewer clients at once"
        ) { [self] other, _, rows in
            guard isAdmin || asking.isOfSameUser(as: other),
                filter.matches(other, for: asking, at: time)
            else { return 0 }
            var line = line(other, time)
            line.withUTF8 { rows.append(Bytes($0)) }
            return 1
        }
        try listings.list(listing, &context) { listing, context in
            listing.writeText(to: &context.output)
        }
        context.execution?.visitsLeft -= listing.visitedCount
    }

    /// Ends connections; what waits to be sent to them is dropped, and commands that ran stay done.
    func kill(
        _ filter: Command.ClientFilter,
        isOld: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        context.noteWalk(over: registry.count)
        let (asking, time, filter) = (context.connection, context.time, ClientFilter(filter))
        var found: [Connection] = []
        for other in registry.connections
        where context.maySee(other) && filter.matches(other, for: asking, at: time) {
            found.append(other)
        }
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

/// Which clients a command is about, with its own copy of the bytes.
private struct ClientFilter {
    private let numbers: Set<Int64>?
    private let address: [UInt8]?
    private let localAddress: [UInt8]?
    private let user: [UInt8]?
    private let options: (type: Command.ClientType?, age: Int64?, skipsSelf: Bool)

    init(_ filter: Command.ClientFilter) {
        numbers = filter.numbers.map { Set($0) }
        address = filter.address.map { Array($0) }
        localAddress = filter.localAddress.map { Array($0) }
        user = filter.user.map { Array($0) }
        options = (filter.type, filter.age, filter.skipsSelf)
    }

    func matches(_ other: Connection, for asking: Connection, at time: Int64) -> Bool {
        if options.skipsSelf, other === asking { return false }
        let age = (time - other.connectedAt) / 1_000
        return numbers?.contains(Int64(other.number)) ?? true
            && options.type.map { other.isOf($0) } ?? true
            && options.age.map { age >= $0 } ?? true
            && user.map { $0 == Array("\(other.peer.uid)".utf8) } ?? true
            && address.map { $0 == Array(other.address.utf8) } ?? true
            && localAddress.map { $0 == Array(other.localAddress.utf8) } ?? true
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
