import CLinux
import Glibc
import StateEngine
import StateWire

/// CLIENT: what a connection says of itself, and what is known of connections.
struct ClientCommands {
    let settings: Settings
    let registry: Registry
    let flushes: FlushList
    let timers: TimerQueue
    let tracking: Tracking
    let waiting: BlockedList
    let listings: Listings

    init(_ services: Services) {
        settings = services.settings
        (registry, flushes, timers) = (services.registry, services.flushes, services.timers)
        (tracking, waiting) = (services.tracking, services.waitingForChanges)
        listings = services.listings
    }

    func run(
        _ command: Command.ClientCommand,
        _ context: inout CommandContext
    ) throws(StateError) {
        let connection = context.connection
        switch command {
        case .setName(let name):
            context.rename(Array(name))
            context.output.writeOK()
        case .getName:
            if connection.session.client.name.isEmpty {
                context.output.writeNull(context.version)
            } else {
                context.output.writeBulk(connection.session.client.name)
            }
        case .setLibrary(let text, let isVersion):
            if isVersion {
                connection.session.client.libraryVersion = Array(text)
            } else {
                connection.session.client.library = Array(text)
            }
            context.output.writeOK()
        case .identify: context.output.writeInteger(Int64(connection.number))
        case .information: context.output.writeBulk(line(connection, context.time))
        case .list(let filter): try list(filter, &context)
        case .kill(let filter, let isOld): try kill(filter, isOld: isOld, &context)
        case .reply(let mode): try setReplies(mode, context)
        case .accept: context.output.writeOK()
        case .pause(let milliseconds, let onlyWrites):
            try pause(milliseconds, onlyWrites: onlyWrites, context)
        case .unpause: try unpause(context)
        case .unblock(let number, let withError): unblock(number, withError: withError, context)
        case .track(let request): try track(request, context)
        case .caching(let isOn): try setCaching(isOn, context)
        case .redirection: writeRedirection(context)
        case .trackingInformation: writeTracking(context)
        }
    }

    /// A connection as Redis describes one: its fields, in its order, and no others, because clients
    /// refuse those that they do not know.
    ///
    /// The user is a uid, and the port in `addr` is the pid of the peer.
    func line(_ connection: Connection, _ time: Int64) -> String {
        let session = connection.session
        let waiting = connection.outbound.waitingByteCount
        let fields: [(String, String)] = [
            ("id", "\(connection.number)"), ("addr", connection.address),
            ("laddr", connection.localAddress), ("fd", "\(connection.descriptor)"),
            ("name", String(decoding: session.client.name, as: UTF8.self)),
            ("age", "\((time - connection.connectedAt) / 1_000)"),
            (
                "idle",
                "\(max(0, time - max(session.usage.lastCommandAt, connection.connectedAt)) / 1_000)"
            ),
            ("flags", flags(connection)), ("db", "0"),
            ("sub", "\(session.subscriptions[.name].count)"),
            ("psub", "\(session.subscriptions[.pattern].count)"),
            ("ssub", "\(session.subscriptions[.shard].count)"),
            ("multi", "\(session.transaction?.count ?? -1)"),
            ("watch", "\(session.watchedKeys.count)"),
            ("qbuf", "\(connection.inbound.bytes.count)"), ("qbuf-free", "0"), ("argv-mem", "0"),
            ("multi-mem", "\(session.transaction?.footprint ?? 0)"), ("rbs", "0"), ("rbp", "0"),
            ("obl", "0"), ("oll", "0"), ("omem", "\(waiting)"),
            ("tot-mem", "\(connection.share.byteCount)"),
            ("events", waiting > 0 ? "rw" : "r"),
            ("cmd", session.usage.lastCommand?.rawValue ?? "NULL"),
            ("user", "\(connection.peer.uid)"),
            ("redir", "\(session.tracking.map { $0.redirection ?? 0 } ?? -1)"),
            ("resp", "\(session.version.rawValue)"),
            ("lib-name", String(decoding: session.client.library, as: UTF8.self)),
            ("lib-ver", String(decoding: session.client.libraryVersion, as: UTF8.self)),
        ]
        return fields.map { "\($0)=\($1)" }.joined(separator: " ") + "\n"
    }

    private func flags(_ connection: Connection) -> String {
        var flags = ""
        if connection.session.isSubscribed { flags += "P" }
        if connection.session.transaction != nil { flags += "x" }
        if connection.inbound.blocked != nil { flags += "b" }
        if connection.session.isMonitor { flags += "O" }
        if let client = connection.session.tracking {
            flags += client.isBroadcast ? "tB" : "t"
            if client.isBroken { flags += "R" }
        }
        return flags + "U"
    }
}

extension CommandContext {
    /// Sets the name; later commits then have a new cause.
    ///
    /// Inside EXEC its commit keeps the one that it began with.
    func rename(_ name: [UInt8]) {
        connection.session.client.name = name
        guard !isExecuting else {
            connection.session.client.isNew = true
            return
        }
        renewCause()
    }

    /// The next commit has a new cause.
    func renewCause() {
        if let cause = connection.session.cause { core.release(cause) }
        connection.session.cause = nil
        connection.session.client.isNew = false
    }
}
