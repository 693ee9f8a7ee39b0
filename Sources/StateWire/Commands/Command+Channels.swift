import StateModel

/// Parses a command about channels; their names may be any bytes.
func readChannelCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .subscribe: return .subscribe(rest, isPattern: false)
    case .psubscribe: return .subscribe(rest, isPattern: true)
    case .unsubscribe: return .unsubscribe(rest, isPattern: false)
    case .punsubscribe: return .unsubscribe(rest, isPattern: true)
    case .publish: return .publish(channel: rest[0], message: rest[1])
    case .pubsub: return .channels(try readPubSub(rest))
    default: preconditionFailure("\(verb.name) is not about channels")
    }
}

private func readPubSub(_ arguments: Arguments) throws(StateError) -> Command.ChannelsCommand {
    if arguments.isWord(0, "CHANNELS") {
        guard arguments.count <= 2 else { throw wrongArity("pubsub|channels") }
        return .names(matching: arguments.count == 2 ? arguments[1] : nil)
    }
    if arguments.isWord(0, "NUMSUB") { return .subscriberCounts(arguments.dropFirst(1)) }
    if arguments.isWord(0, "NUMPAT") {
        guard arguments.count == 1 else { throw wrongArity("pubsub|numpat") }
        return .patternCount
    }
    throw unknownSubcommand(
        arguments[0],
        of: "PUBSUB",
        known: "CHANNELS [glob], NUMSUB [name ...] or NUMPAT"
    )
}

/// The names and values of CONFIG SET.
func readConfigSet(_ pairs: Arguments) throws(StateError) -> Command {
    guard pairs.count >= 2 else { throw wrongArity("config|set") }
    guard pairs.count % 2 == 0 else { throw StateError(.err, "syntax error") }
    return .configure(pairs)
}

private func wrongArity(_ subcommand: String) -> StateError {
    StateError(.err, "wrong number of arguments for '\(subcommand)' command")
}
