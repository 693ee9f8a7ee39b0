import CLinux
import StateEngine
import StateWire

/// Commands about the connection and the server.
struct SessionCommands {
    private let settings: Settings
    private let registry: Registry
    private let channels: Channels
    private let watches: WatchCommands
    private let handlers: HandlerCommands
    private let clients: ClientCommands
    private let tracking: Tracking
    private let monitors: Monitors
    private let backups: Backups

    init(_ services: Services, _ watches: WatchCommands, _ handlers: HandlerCommands) {
        settings = services.settings
        registry = services.registry
        channels = services.channels
        (self.watches, self.handlers) = (watches, handlers)
        clients = ClientCommands(services)
        (tracking, monitors) = (services.tracking, services.monitors)
        backups = services.backups
    }

    func run(_ command: Command, _ context: inout CommandContext) throws(StateError) {
        switch command {
        case .hello(let version, let client, let user):
            if let user { try authenticate(user) }
            hello(version, client, context)
        case .authenticate(let user):
            guard let user else { throw SessionCommands.noPassword }
            try authenticate(user)
            context.output.writeOK()
        case .ping(let message):
            if context.isRestricted {
                context.output.writeArray(2)
                context.output.writeBulk("pong")
                context.output.writeBulk(message ?? Bytes(start: nil, count: 0))
            } else if let message {
                context.output.writeBulk(message)
            } else {
                context.output.writeSimple("PONG")
            }
        case .echo(let message): context.output.writeBulk(message)
        case .quit:
            context.connection.ending.isDue = true
            context.output.writeOK()
        case .reset:
            reset(context)
            context.output.writeSimple("RESET")
        case .select: context.output.writeOK()
        case .client(let command): try clients.run(command, &context)
        case .configuration(let names): configuration(names, context)
        case .time:
            context.output.writeArray(2)
            context.output.writeBulk(String(context.time / 1_000))
            context.output.writeBulk(String(context.time % 1_000 * 1_000))
        default: preconditionFailure("not a command of the session")
        }
    }

    /// The reply of Redis if no password is set.
    private static let noPassword = StateError(
        .err,
        "AUTH <password> called without any password configured for the default user. Are you sure "
            + "your configuration is correct?"
    )

    /// As in Redis: its one user has no password, so that any password is accepted.
    private func authenticate(_ user: Bytes) throws(StateError) {
        guard user.text == "default" else {
            throw StateError(
                StateError.Code("WRONGPASS"),
                "invalid username-password pair or user is disabled."
            )
        }
    }

    private func hello(_ version: Int64?, _ client: Bytes?, _ context: borrowing CommandContext) {
        if let version, let chosen = ProtocolVersion(rawValue: Int(version)) {
            // Only RESP3 has pushes.
            if chosen == .resp2 { watches.end(context.connection, context.core) }
            context.connection.session.version = chosen
        }
        if let client { context.rename(Array(client)) }
        context.output.writeMap(7, context.version)
        // Clients look for these names, as bulk strings, and for a Redis version.
        context.output.writeField("server", "redis")
        context.output.writeField("version", SessionCommands.redisVersion)
        context.output.writeField("proto", Int64(context.version.rawValue))
        context.output.writeField("id", Int64(context.connection.number))
        context.output.writeField("mode", "standalone")
        context.output.writeField("role", "master")
        context.output.writeBulk("modules")
        context.output.writeArray(0)
    }

    /// The version whose behaviour the common commands follow.
    static let redisVersion = "7.0.15"

    private func reset(_ context: borrowing CommandContext) {
        watches.end(context.connection, context.core)
        channels.unsubscribeAll(context.connection, context.core)
        handlers.end(context.connection)
        tracking.end(context.connection, context.core)
        monitors.end(context.connection)
        context.connection.session.silence = .none
        context.connection.session.transaction = nil
        backups.end(context.connection)
        context.connection.session.forgetWatchedKeys(context.core)
        context.connection.session.version = .resp2
        context.rename([])
    }

    // MARK: CONFIG

    /// The options of Redis that clients ask for, with what is true here.
    private var knownOptions: [(String, String)] {
        let limits = settings.options.limits
        let isStored = registry.store.isPersistent
        return [
            ("activedefrag", "no"), ("activerehashing", "no"),
            ("appendfsync", "always"), ("appendonly", isStored ? "yes" : "no"),
            ("bind", ""), ("client-query-buffer-limit", String(limits.transactionByteCount)),
            ("cluster-enabled", "no"), ("databases", "1"), ("io-threads", "1"),
            ("latency-monitor-threshold", "0"), ("lazyfree-lazy-user-del", "no"),
            ("maxclients", String(settings.options.clientCount)), ("maxmemory", "0"),
            ("maxmemory-policy", "noeviction"), ("maxmemory-samples", "5"),
            ("notify-keyspace-events", "AKE"), ("port", "0"),
            ("proto-max-bulk-len", String(limits.valueByteCount)), ("rdbcompression", "no"),
            ("replica-read-only", "yes"), ("requirepass", ""), ("save", ""),
            ("slowlog-log-slower-than", String(CommandStatistics.slowNanoseconds / 1_000)),
            ("slowlog-max-len", String(CommandStatistics.slowCount)), ("tcp-keepalive", "0"),
            ("timeout", "0"), ("tls-port", "0"),
            ("tracking-table-max-keys", String(settings.options.trackedKeyCount)),
        ]
    }

    /// CONFIG GET.
    private func configuration(_ names: Arguments, _ context: borrowing CommandContext) {
        let known = knownOptions
        let patterns = (0..<names.count).map { Pattern(redisGlob: names[$0]) }
        let found = known.filter { name, _ in
            var name = name
            return name.withUTF8 { bytes in patterns.contains { $0.matches(Bytes(bytes)) } }
        }
        context.output.writeMap(found.count, context.version)
        for (name, value) in found {
            context.output.writeBulk(name)
            context.output.writeBulk(value)
        }
    }
}
