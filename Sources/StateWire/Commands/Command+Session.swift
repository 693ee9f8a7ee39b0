import StateModel

/// Parses a command about the connection itself.
func readConnectionCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .hello: return try readHello(rest)
    case .auth:
        guard rest.count <= 2 else { throw syntaxError() }
        return .authenticate(user: rest.count == 2 ? rest[0] : nil)
    case .echo: return .echo(rest[0])
    case .quit: return .quit
    case .reset: return .reset
    case .select:
        try checkDatabase(rest[0])
        return .select
    case .client: return try readClient(rest)
    case .info: return .information(rest)
    case .command:
        if rest.count == 1, rest.isWord(0, "HELP") { return .help(.command) }
        return .describe(try readDescribe(rest))
    case .config:
        if rest.isWord(0, "SET") { return try readConfigSet(rest.dropFirst(1)) }
        if rest.isWord(0, "RESETSTAT"), rest.count == 1 { return .administer(.resetStatistics) }
        if rest.isWord(0, "HELP"), rest.count == 1 { return .help(.config) }
        guard rest.isWord(0, "GET"), rest.count > 1 else {
            throw unknownSubcommand(rest[0], of: "CONFIG", known: "GET, SET or RESETSTAT")
        }
        return .configuration(rest.dropFirst(1))
    case .time: return .time
    default: preconditionFailure("\(verb.name) is not a verb of the connection")
    }
}

private func readHello(_ arguments: Arguments) throws(StateError) -> Command {
    guard arguments.count > 0 else {
        return .hello(version: nil, client: nil, user: nil)
    }
    guard let version = arguments[0].decimal else {
        throw StateError(.err, "Protocol version is not an integer or out of range")
    }
    guard version == 2 || version == 3 else {
        throw StateError(.noProtocol, "unsupported protocol version")
    }
    var client: Bytes?
    var user: Bytes?
    var options = OptionCursor(arguments, from: 1)
    while !options.isAtEnd {
        if let (name, _) = options.values(of: "AUTH") {
            user = name
        } else if let name = options.value(of: "SETNAME") {
            client = try clientName(name)
        } else {
            throw syntaxError("in HELLO option \(StateError.quoted(options.next))")
        }
    }
    return .hello(version: version, client: client, user: user)
}

private func readDescribe(_ arguments: Arguments) throws(StateError) -> Command.DescribeCommand {
    guard arguments.count > 0 else { return .all }
    if arguments.isWord(0, "COUNT"), arguments.count == 1 { return .count }
    if arguments.isWord(0, "DOCS") { return .documentation(arguments.dropFirst(1)) }
    if arguments.isWord(0, "INFO") { return .information(arguments.dropFirst(1)) }
    if arguments.isWord(0, "LIST"), arguments.count == 1 { return .list }
    if arguments.isWord(0, "GETKEYS") || arguments.isWord(0, "GETKEYSANDFLAGS") {
        guard arguments.count > 1 else { throw wrongArity("command", arguments[0]) }
        return try readKeyQuestion(arguments)
    }
    throw unknownSubcommand(
        arguments[0],
        of: "COMMAND",
        known: "COUNT, DOCS, GETKEYS, GETKEYSANDFLAGS, INFO or LIST"
    )
}

private func readKeyQuestion(
    _ arguments: Arguments
) throws(StateError) -> Command.DescribeCommand {
    let command = arguments.dropFirst(1)
    guard let verb = Verb.named(command[0]) else {
        throw StateError(.err, "Invalid command specified")
    }
    guard verb.accepts(argumentCount: command.count) else {
        throw StateError(.err, "Invalid number of arguments specified for command")
    }
    guard let places = verb.keyPlaces(command) else {
        throw StateError(.err, "Invalid arguments specified for command")
    }
    guard !places.isEmpty else { throw StateError(.err, "The command has no key arguments") }
    return .keys(verb, command, withFlags: arguments.isWord(0, "GETKEYSANDFLAGS"))
}
