import StateModel

/// Parses a command about channels; their names may be any bytes.
func readChannelCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .subscribe: return .subscribe(rest, .name)
    case .psubscribe: return .subscribe(rest, .pattern)
    case .ssubscribe: return .subscribe(rest, .shard)
    case .unsubscribe: return .unsubscribe(rest, .name)
    case .punsubscribe: return .unsubscribe(rest, .pattern)
    case .sunsubscribe: return .unsubscribe(rest, .shard)
    case .publish, .spublish:
        let isSharded = verb.name == .spublish
        return .publish(channel: rest[0], message: rest[1], isSharded: isSharded)
    case .pubsub:
        if rest.isWord(0, "HELP"), rest.count == 1 { return .help(.pubsub) }
        return .channels(try readPubSub(rest))
    default: preconditionFailure("\(verb.name) is not about channels")
    }
}

private func readPubSub(_ arguments: Arguments) throws(StateError) -> Command.ChannelsCommand {
    let isOfShards = arguments.isWord(0, "SHARDCHANNELS")
    if isOfShards || arguments.isWord(0, "CHANNELS") {
        guard arguments.count <= 2 else { throw wrongArity("pubsub", arguments[0]) }
        return .names(
            matching: arguments.count == 2 ? arguments[1] : nil,
            isOfShards ? .shard : .name
        )
    }
    if arguments.isWord(0, "NUMSUB") { return .subscriberCounts(arguments.dropFirst(1), .name) }
    if arguments.isWord(0, "SHARDNUMSUB") {
        return .subscriberCounts(arguments.dropFirst(1), .shard)
    }
    if arguments.isWord(0, "NUMPAT") {
        guard arguments.count == 1 else { throw wrongArity("pubsub", arguments[0]) }
        return .patternCount
    }
    throw unknownSubcommand(
        arguments[0],
        of: "PUBSUB",
        known: "CHANNELS [glob], NUMSUB [name ...], NUMPAT, SHARDCHANNELS [glob] or SHARDNUMSUB "
            + "[name ...]"
    )
}

/// The names and values of CONFIG SET.
func readConfigSet(_ pairs: Arguments) throws(StateError) -> Command {
    guard pairs.count >= 2 else {
        throw StateError(.err, "wrong number of arguments for 'config|set' command")
    }
    guard pairs.count % 2 == 0 else { throw StateError(.err, "syntax error") }
    return .configure(pairs)
}
