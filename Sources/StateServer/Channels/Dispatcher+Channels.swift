import StateEngine
import StateWire

/// Channels, as Redis has them: SUBSCRIBE and its relatives, PUBLISH, PUBSUB, and CONFIG SET of the keyspace notifications.
extension Dispatcher {
    // MARK: A connection that subscribes

    /// In RESP2 nothing tells a message from a reply, so a connection that subscribes has few other commands.
    func isRestricted(_ connection: Connection) -> Bool {
        connection.isSubscribed && connection.version == .resp2
    }

    /// Refuses what a connection that subscribes may not run, in Redis's words.
    func checkMayRun(
        _ verb: Verb,
        _ arguments: Arguments,
        _ connection: Connection
    )
        throws(StateError)
    {
        guard isRestricted(connection) else { return }
        var name = verb.name.rawValue
        switch verb.name {
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .ping, .quit, .reset: return
        case .client, .config, .command, .pubsub:
            if arguments.count > 1 { name += "|" + arguments[1].prefix(128).shown.lowercased() }
        default: break
        }
        throw StateError(
            .err,
            "Can't execute '\(name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                + "allowed in this context"
        )
    }

    func subscribe(
        _ names: Arguments,
        _ kind: Channel.Kind,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        try checkConfirmations(names)
        if kind == .name { try requireHearing(names, connection, core) }
        try checkRoom(for: names, kind, connection)
        if kind == .pattern { try checkGlobs(globCount(names), connection, core) }
        rememberSubscriptions(of: connection)
        for index in 0..<names.count {
            channels.subscribe(connection, to: names[index], kind, core)
            confirm(kind == .name ? "subscribe" : "psubscribe", names[index], connection)
        }
    }

    func unsubscribe(
        _ names: Arguments,
        _ kind: Channel.Kind,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        try checkConfirmations(names)
        rememberSubscriptions(of: connection)
        let verb: StaticString = kind == .name ? "unsubscribe" : "punsubscribe"
        if names.count > 0 {
            for index in 0..<names.count {
                channels.unsubscribe(connection, from: Array(names[index]), kind, core)
                confirm(verb, names[index], connection)
            }
            return
        }
        let all = connection.subscriptions[kind].keys.sorted { $0.lexicographicallyPrecedes($1) }
        for name in all {
            channels.unsubscribe(connection, from: name, kind, core)
            name.withUnsafeBytes { confirm(verb, $0, connection) }
        }
        if all.isEmpty { confirm(verb, nil, connection) }
    }

    /// One reply for each name, with the number of subscriptions that the connection has then.
    private func confirm(_ verb: StaticString, _ name: Bytes?, _ connection: Connection) {
        if connection.version == .resp3 {
            connection.output.writePush(3)
        } else {
            connection.output.writeArray(3)
        }
        connection.output.writeBulk(verb)
        if let name {
            connection.output.writeBulk(name)
        } else {
            connection.output.writeNull(connection.version)
        }
        connection.output.writeInteger(Int64(connection.subscriptions.count))
    }

    // MARK: Bounds

    private func checkName(_ name: Bytes) throws(StateError) {
        guard name.count > options.channelNameByteCount else { return }
        throw StateError(
            .tooBig,
            "channel \(StateError.quoted(name)) has \(name.count) bytes; the limit is "
                + "\(options.channelNameByteCount)"
        )
    }

    /// Nothing changes where the confirmations of all names would be too much, or a name is.
    private func checkConfirmations(_ names: Arguments) throws(StateError) {
        for index in 0..<names.count { try checkName(names[index]) }
        let byteCount = names.byteCount + 64 * names.count
        guard byteCount > options.replyByteCount else { return }
        throw StateError(
            .tooBig,
            "a reply of more than \(options.replyByteCount) bytes; name fewer channels at once"
        )
    }

    /// Nothing changes where not all of the subscriptions are allowed.
    private func checkRoom(
        for names: Arguments,
        _ kind: Channel.Kind,
        _ connection: Connection
    )
        throws(StateError)
    {
        let room = options.subscriptionCount - connection.subscriptions.count
        guard names.count > room else { return }
        var new: Set<[UInt8]> = []
        for index in 0..<names.count {
            let name = Array(names[index])
            if connection.subscriptions[kind][name] == nil { new.insert(name) }
            guard new.count <= room else {
                throw StateError(
                    .limit,
                    "more than \(options.subscriptionCount) channels and patterns of one client; "
                        + "unsubscribe from some, or use another connection"
                )
            }
        }
    }

    private func globCount(_ names: Arguments) -> Int {
        (0..<names.count).count { Pattern(redisGlob: names[$0]).kind == .glob }
    }

    // MARK: Transactions

    /// Notes what a transaction that is undone gives back.
    private func rememberSubscriptions(of connection: Connection) {
        if isExecuting, subscriptionsBefore == nil {
            subscriptionsBefore = connection.subscriptions
        }
    }

    /// The transaction was undone: its messages are not sent, and the subscriptions are as before.
    func undoChannels(of connection: Connection, _ core: KeyspaceCore) {
        channels.dropPostponed()
        guard let before = subscriptionsBefore else { return }
        subscriptionsBefore = nil
        for kind in [Channel.Kind.name, .pattern] {
            let now = connection.subscriptions[kind]
            for name in now.keys where before[kind][name] == nil {
                channels.unsubscribe(connection, from: name, kind, core)
            }
            for name in before[kind].keys where now[name] == nil {
                name.withUnsafeBytes { channels.subscribe(connection, to: $0, kind, core) }
            }
        }
    }

    // MARK: Messages

    /// Answers with the number of times that the message was handed out.
    ///
    /// It goes at once, whether or not the reply waits. To the connection that sends it, it goes behind the reply, and those of a
    /// transaction go when all of its commands were carried out: as Redis does since 7.2.
    func publish(
        _ message: Bytes,
        to channel: Bytes,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        try checkName(channel)
        try requirePublish(message, to: channel, connection, core)
        let audience = core.audience(ofChannel: channel)
        let count =
            isExecuting || connection.isSubscribed
            ? channels.postpone(message, to: channel, heardBy: audience)
            : channels.publish(message, to: channel, heardBy: audience)
        connection.output.writeInteger(Int64(count))
    }

    func tellChannels(
        _ command: Command.ChannelsCommand,
        _ connection: Connection,
        _ core: KeyspaceCore
    )
        throws(StateError)
    {
        switch command {
        case .patternCount: connection.output.writeInteger(Int64(channels.patternCount))
        case .subscriberCounts(let names):
            try checkConfirmations(names)
            try requireHearing(names, connection, core)
            connection.output.writeArray(2 * names.count)
            for index in 0..<names.count {
                connection.output.writeBulk(names[index])
                connection.output.writeInteger(
                    Int64(channels.subscriberCount(of: names[index]))
                )
            }
        case .names(let glob):
            let pattern = glob.map { Pattern(redisGlob: $0) }
            let found = channels.subscribedNames.filter { channel in
                channel.bytes.withUnsafeBytes { pattern?.matches($0) ?? true }
                    && mayHear(channel.bytes, connection, core)
            }
            let byteCount = found.reduce(0) { $0 + $1.bytes.count + 16 }
            guard byteCount <= options.replyByteCount else {
                throw StateError(
                    .tooBig,
                    "a reply of more than \(options.replyByteCount) bytes; ask with a narrower glob"
                )
            }
            connection.output.writeArray(found.count)
            for channel in found { connection.output.writeBulk(channel.bytes) }
        }
    }

    // MARK: Configuration

    /// Accepts what switches keyspace notifications on or off elsewhere: here they are always on.
    func configure(_ pairs: Arguments) throws(StateError) {
        for index in stride(from: 0, to: pairs.count, by: 2) {
            guard pairs[index].isWord("NOTIFY-KEYSPACE-EVENTS") else {
                throw StateError(
                    .err,
                    "CONFIG SET \(StateError.quoted(pairs[index])): the configuration is not changed this "
                        + "way; start the daemon with other options"
                )
            }
            let flags = "Ag$lshzxeKEtmdn"
            guard pairs[index + 1].allSatisfy(flags.utf8.contains) else {
                throw StateError(
                    .err,
                    "CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - "
                        + "Invalid event class character. Use '\(flags)'."
                )
            }
        }
    }
}
