import StateEngine
import StateWire

/// Channels as in Redis: SUBSCRIBE and its relatives, PUBLISH, PUBSUB, and CONFIG SET for keyspace
/// notifications.
struct ChannelCommands {
    let settings: Settings
    let channels: Channels
    let listings: Listings

    func subscribe(
        _ names: Arguments,
        _ kind: Channel.Kind,
        _ context: inout CommandContext
    ) throws(StateError) {
        try checkConfirmations(names)
        if kind != .pattern { try context.requireReceiving(names) }
        try checkRoom(for: names, kind, context)
        if kind == .pattern {
            try settings.options.checkPatterns(names.count, context)
            try settings.options.checkGlobs(globCount(names), context)
        }
        context.rememberSubscriptions()
        for index in 0..<names.count {
            channels.subscribe(context.connection, to: names[index], kind, context.core)
            confirm(kind.word(begins: true), kind, names[index], context)
        }
    }

    func unsubscribe(
        _ names: Arguments,
        _ kind: Channel.Kind,
        _ context: inout CommandContext
    ) throws(StateError) {
        try checkConfirmations(names)
        context.rememberSubscriptions()
        let verb = kind.word(begins: false)
        if names.count > 0 {
            for index in 0..<names.count {
                channels.unsubscribe(
                    context.connection,
                    from: Array(names[index]),
                    kind,
                    context.core
                )
                confirm(verb, kind, names[index], context)
            }
            return
        }
        let all = context.connection.session.subscriptions[kind].keys.sorted {
            $0.lexicographicallyPrecedes($1)
        }
        for name in all {
            channels.unsubscribe(context.connection, from: name, kind, context.core)
            name.withUnsafeBytes { confirm(verb, kind, $0, context) }
        }
        if all.isEmpty { confirm(verb, kind, nil, context) }
    }

    /// One reply for each name, with the number of subscriptions of the connection after it.
    private func confirm(
        _ verb: StaticString,
        _ kind: Channel.Kind,
        _ name: Bytes?,
        _ context: borrowing CommandContext
    ) {
        if context.version == .resp3 {
            context.output.writePush(3)
        } else {
            context.output.writeArray(3)
        }
        context.output.writeBulk(verb)
        if let name {
            context.output.writeBulk(name)
        } else {
            context.output.writeNull(context.version)
        }
        let subscriptions = context.connection.session.subscriptions
        context.output.writeInteger(Int64(subscriptions.count(with: kind)))
    }

    // MARK: Limits

    private func checkName(_ name: Bytes) throws(StateError) {
        guard name.count > settings.options.channelNameByteCount else { return }
        throw StateError(
            .tooBig,
            "channel \(StateError.quoted(name)) has \(name.count) bytes; the limit is "
                + "\(settings.options.channelNameByteCount)"
        )
    }

    /// Refuses all names, so that nothing changes, if one is too long or the confirmations are too
    /// large.
    private func checkConfirmations(_ names: Arguments) throws(StateError) {
        for index in 0..<names.count { try checkName(names[index]) }
        let byteCount = names.byteCount + 64 * names.count
        guard byteCount > settings.options.replyByteCount else { return }
        throw StateError(
            .tooBig,
            "the reply would have more than \(settings.options.replyByteCount) bytes, the limit; "
                + "name fewer channels at once"
        )
    }

    /// Refuses all subscriptions, so that nothing changes, if there are too many.
    private func checkRoom(
        for names: Arguments,
        _ kind: Channel.Kind,
        _ context: borrowing CommandContext
    )
        throws(StateError)
    {
        let room =
            settings.options.subscriptionCount - context.connection.session.subscriptions.count
        guard names.count > room else { return }
        var new: Set<[UInt8]> = []
        for index in 0..<names.count {
            let name = Array(names[index])
            if context.connection.session.subscriptions[kind][name] == nil { new.insert(name) }
            guard new.count <= room else {
                throw StateError(
                    .limit,
                    "more than \(settings.options.subscriptionCount) channels and patterns, the "
                        + "limit of a client; unsubscribe from some, or use another connection"
                )
            }
        }
    }

    private func globCount(_ names: Arguments) -> Int {
        (0..<names.count).reduce(0) { $0 + Pattern(redisGlob: names[$1]).globCount }
    }

    // MARK: Messages

    /// Replies with the number of deliveries of the message, as far as they are known at once.
    ///
    /// The message goes out at once, even if the reply has to wait, unless the subscriptions of a user
    /// take long. The sending connection gets it
    /// after the reply. Messages of a transaction go out after all its commands, as in Redis since
    /// 7.2.
    func publish(
        _ message: Bytes,
        to channel: Bytes,
        isSharded: Bool,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        try checkName(channel)
        try context.requirePublish(message, to: channel)
        let audience = context.core.audience(ofChannel: channel)
        let count =
            context.isExecuting || context.connection.session.isSubscribed
            ? channels.postpone(
                message,
                to: channel,
                isSharded: isSharded,
                for: audience,
                by: context.connection
            )
            : channels.publish(message, to: channel, isSharded: isSharded, for: audience)
        context.output.writeInteger(Int64(count))
    }

    func describe(
        _ command: Command.ChannelsCommand,
        _ context: inout CommandContext
    ) throws(StateError) {
        switch command {
        case .patternCount: context.output.writeInteger(Int64(channels.patternCount))
        case .subscriberCounts(let names, let kind):
            try checkConfirmations(names)
            try context.requireReceiving(names)
            context.output.writeArray(2 * names.count)
            for index in 0..<names.count {
                context.output.writeBulk(names[index])
                context.output.writeInteger(
                    Int64(channels.subscriberCount(of: names[index], kind))
                )
            }
        case .names(let glob, let kind):
            if let glob { try KeyspaceCommands.checkGlob(glob) }
            try list(kind, matching: glob.map { Pattern(redisGlob: $0) }, &context)
        }
    }

    private func list(
        _ kind: Channel.Kind,
        matching pattern: Pattern?,
        _ context: inout CommandContext
    ) throws(StateError) {
        let listing = ChannelListing(
            channels,
            kind,
            matching: pattern,
            for: context.connection.subject,
            byteLimit: settings.options.replyByteCount,
            visitLimit: context.execution?.visitsLeft ?? .max
        )
        try listings.list(listing, &context) { listing, context in
            context.output.writeArray(listing.count)
            listing.writeRows(to: &context.output)
        }
        context.execution?.visitsLeft -= listing.visitedCount
    }

    // MARK: Configuration

    /// Accepts the setting that turns keyspace notifications on or off in Redis; here they are
    /// always on.
    func configure(_ pairs: Arguments, _ context: borrowing CommandContext) throws(StateError) {
        for index in stride(from: 0, to: pairs.count, by: 2) {
            guard pairs[index].isWord("NOTIFY-KEYSPACE-EVENTS") else {
                throw StateError(
                    .err,
                    "CONFIG SET \(StateError.quoted(pairs[index])): clients cannot change the "
                        + "configuration; edit the configuration file and use STATE.RELOAD"
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
        context.output.writeOK()
    }
}

extension Channel.Kind {
    /// The word of a confirmation.
    fileprivate func word(begins: Bool) -> StaticString {
        switch self {
        case .name: begins ? "subscribe" : "unsubscribe"
        case .pattern: begins ? "psubscribe" : "punsubscribe"
        case .shard: begins ? "ssubscribe" : "sunsubscribe"
        }
    }
}

extension CommandContext {
    /// In RESP2 a message cannot be distinguished from a reply, so a connection with subscriptions
    /// may run only few other commands.
    var isRestricted: Bool { connection.session.isSubscribed && version == .resp2 }

    /// Refuses what a connection with subscriptions may not run, in the words of Redis.
    func checkMayRun(_ verb: Verb, _ arguments: Arguments) throws(StateError) {
        guard isRestricted else { return }
        var name = verb.name.rawValue
        switch verb.name {
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .ssubscribe, .sunsubscribe,
            .ping, .quit, .reset:
            return
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

    /// Saves the subscriptions, to restore them if the transaction is undone.
    fileprivate mutating func rememberSubscriptions() {
        if let execution, execution.subscriptionsBefore == nil {
            self.execution?.subscriptionsBefore = connection.session.subscriptions
        }
    }
}

extension Channels {
    /// The commands of EXEC were undone: drops their messages and restores the subscriptions.
    func undo(_ context: inout CommandContext) {
        dropPostponed()
        guard let before = context.execution?.subscriptionsBefore else { return }
        context.execution?.subscriptionsBefore = nil
        let connection = context.connection
        for kind in [Channel.Kind.name, .pattern, .shard] {
            let now = connection.session.subscriptions[kind]
            for (name, subscription) in now where before[kind][name] !== subscription {
                unsubscribe(connection, from: name, kind, context.core)
            }
            for (name, subscription) in before[kind] where now[name] !== subscription {
                resume(subscription, context.core)
            }
        }
    }
}
