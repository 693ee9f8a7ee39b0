import CLinux
import StateEngine
import StateWire

/// Commands about the connection and the server.
extension Dispatcher {
    func runSession(
        _ command: Command,
        for connection: Connection,
        in core: KeyspaceCore
    )
        throws(StateError)
    {
        switch command {
        case .hello(let version, let client, let user):
            if let user { try authenticate(user) }
            hello(version, client, connection, core)
        case .authenticate(let user):
            guard let user else { throw Dispatcher.noPassword }
            try authenticate(user)
            connection.output.writeOK()
        case .ping(let message):
            if isRestricted(connection) {
                connection.output.writeArray(2)
                connection.output.writeBulk("pong")
                connection.output.writeBulk(message ?? Bytes(start: nil, count: 0))
            } else if let message {
                connection.output.writeBulk(message)
            } else {
                connection.output.writeSimple("PONG")
            }
        case .echo(let message): connection.output.writeBulk(message)
        case .quit:
            connection.isEnding = true
            connection.output.writeOK()
        case .reset:
            reset(connection, core)
            connection.output.writeSimple("RESET")
        case .select: connection.output.writeOK()
        case .client(let command): client(command, connection, core)
        case .information(let sections):
            let wanted = (0..<sections.count).map { sections[$0].text }
            connection.output.writeBulk(information(wanted, connection, core))
        case .describe(let command): describe(command, connection)
        case .configuration(let names): configuration(names, connection)
        case .configure(let pairs):
            try configure(pairs)
            connection.output.writeOK()
        case .time:
            connection.output.writeArray(2)
            connection.output.writeBulk(String(now / 1_000))
            connection.output.writeBulk(String(now % 1_000 * 1_000))
        default: preconditionFailure("no command of the session")
        }
    }

    /// As Redis answers where none is set.
    private static let noPassword = StateError(
        .err,
        "AUTH <password> called without any password configured for the default user. Are you sure "
            + "your configuration is correct?"
    )

    /// As Redis does: its one user has no password, so that any will do.
    private func authenticate(_ user: Bytes) throws(StateError) {
        guard user.text == "default" else {
            throw StateError(
                StateError.Code("WRONGPASS"),
                "invalid username-password pair or user is disabled."
            )
        }
    }

    private func hello(
        _ version: Int64?,
        _ client: Bytes?,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) {
        if let version, let chosen = ProtocolVersion(rawValue: Int(version)) {
            // Pushes are for RESP3 alone.
            if chosen == .resp2 { endWatches(connection, core) }
            connection.version = chosen
        }
        if let client { rename(connection, Array(client), core) }
        connection.output.writeMap(7, connection.version)
        // The names are what clients look for: bulk strings, and a Redis version for the dialect.
        connection.output.writeField("server", "redis")
        connection.output.writeField("version", Dispatcher.redisVersion)
        connection.output.writeField("proto", Int64(connection.version.rawValue))
        connection.output.writeField("id", Int64(connection.number))
        connection.output.writeField("mode", "standalone")
        connection.output.writeField("role", "master")
        connection.output.writeBulk("modules")
        connection.output.writeArray(0)
    }

    /// The version whose behaviour the common commands follow.
    static let redisVersion = "7.0.15"

    private func reset(_ connection: Connection, _ core: KeyspaceCore) {
        endWatches(connection, core)
        channels.unsubscribeAll(connection, core)
        endHandlers(connection)
        connection.transaction = nil
        connection.watchedKeys = []
        connection.version = .resp2
        rename(connection, [], core)
    }

    /// A new name is a new cause for the commits that follow.
    private func rename(_ connection: Connection, _ name: [UInt8], _ core: KeyspaceCore) {
        connection.name = name
        if let cause = connection.cause { core.release(cause) }
        connection.cause = nil
    }

    // MARK: CLIENT

    private func client(
        _ command: Command.ClientCommand,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) {
        switch command {
        case .setName(let name):
            rename(connection, Array(name), core)
            connection.output.writeOK()
        case .getName:
            if connection.name.isEmpty {
                connection.output.writeNull(connection.version)
            } else {
                connection.output.writeBulk(connection.name)
            }
        case .setInformation: connection.output.writeOK()
        case .identify: connection.output.writeInteger(Int64(connection.number))
        case .information: connection.output.writeBulk(line(connection))
        case .list:
            let lines = registry.connections.filter { maySee($0, connection, core) }
                .sorted { $0.number < $1.number }.map(line)
            connection.output.writeBulk(lines.joined())
        }
    }

    private func line(_ connection: Connection) -> String {
        "id=\(connection.number) fd=\(connection.descriptor)"
            + " name=\(String(decoding: connection.name, as: UTF8.self))"
            + " age=\((now - connection.connectedAt) / 1_000) db=0"
            + " sub=\(connection.subscriptions[.name].count)"
            + " psub=\(connection.subscriptions[.pattern].count)"
            + " multi=\(connection.transaction?.count ?? -1)"
            + " watch=\(connection.watchedKeys.count) watches=\(connection.watchers.count)"
            + " qbuf=\(connection.input.count) omem=\(connection.waitingByteCount)"
            + " tot-cmds=\(connection.commandCount) resp=\(connection.version.rawValue)"
            + " uid=\(connection.peer.uid) pid=\(connection.peer.pid)\n"
    }

    // MARK: COMMAND and CONFIG

    private func describe(_ command: Command.DescribeCommand, _ connection: Connection) {
        switch command {
        case .count: connection.output.writeInteger(Int64(Verb.all.count))
        case .list:
            connection.output.writeArray(Verb.all.count)
            for verb in Verb.all { connection.output.writeBulk(verb.name.rawValue) }
        case .all:
            connection.output.writeArray(Verb.all.count)
            for verb in Verb.all { describe(verb, connection) }
        case .information(let names):
            guard names.count > 0 else { return describe(.all, connection) }
            connection.output.writeArray(names.count)
            for index in 0..<names.count {
                if let verb = Verb.named(names[index]) {
                    describe(verb, connection)
                } else {
                    connection.output.writeNullArray(connection.version)
                }
            }
        case .documentation(let names):
            let verbs =
                names.count == 0
                ? Verb.all : (0..<names.count).compactMap { Verb.named(names[$0]) }
            connection.output.writeMap(verbs.count, connection.version)
            for verb in verbs { document(verb, connection) }
        }
    }

    private func describe(_ verb: Verb, _ connection: Connection) {
        connection.output.writeArray(10)
        connection.output.writeBulk(verb.name.rawValue)
        connection.output.writeInteger(Int64(verb.arity))
        connection.output.writeArray(1)
        connection.output.writeSimple(
            verb.isWrite ? "write" : verb.isAboutChannels ? "pubsub" : "readonly"
        )
        connection.output.writeInteger(Int64(verb.keys.first))
        connection.output.writeInteger(Int64(verb.keys.last))
        connection.output.writeInteger(Int64(verb.keys.step))
        // ACL categories, tips, key specifications, subcommands.
        for _ in 0..<4 { connection.output.writeArray(0) }
    }

    private func document(_ verb: Verb, _ connection: Connection) {
        connection.output.writeBulk(verb.name.rawValue)
        connection.output.writeMap(2, connection.version)
        connection.output.writeField("summary", "\(verb.summary)")
        connection.output.writeField(
            "group",
            verb.name.rawValue.hasPrefix("state.") ? "state" : "generic"
        )
    }

    /// The values that clients ask for, in Redis's names.
    private func configuration(_ names: Arguments, _ connection: Connection) {
        let known: [(String, String)] = [
            ("appendfsync", "always"), ("appendonly", registry.isPersistent ? "yes" : "no"),
            ("databases", "1"), ("maxclients", String(options.clientCount)),
            ("notify-keyspace-events", "AKE"), ("save", ""),
            ("proto-max-bulk-len", String(options.limits.valueByteCount)),
        ]
        let patterns = (0..<names.count).map { Pattern(redisGlob: names[$0]) }
        let found = known.filter { name, _ in
            var name = name
            return name.withUTF8 { bytes in patterns.contains { $0.matches(Bytes(bytes)) } }
        }
        connection.output.writeMap(found.count, connection.version)
        for (name, value) in found {
            connection.output.writeBulk(name)
            connection.output.writeBulk(value)
        }
    }
}
