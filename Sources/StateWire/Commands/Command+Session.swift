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
        guard let number = rest[0].decimal else {
            throw StateError(.err, "invalid DB index")
        }
        guard number == 0 else { throw StateError(.err, "DB index is out of range") }
        return .select
    case .client: return .client(try readClient(rest))
    case .info: return .information(rest)
    case .command: return .describe(try readDescribe(rest))
    case .config:
        if rest.isWord(0, "SET") { return try readConfigSet(rest.dropFirst(1)) }
        guard rest.isWord(0, "GET"), rest.count > 1 else {
            throw unknownSubcommand(rest[0], of: "CONFIG", known: "GET or SET")
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

private func clientName(_ name: Bytes) throws(StateError) -> Bytes {
    guard name.count <= 256, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
        throw StateError(
            .err,
            "Client names cannot contain spaces, newlines or special characters, nor more than "
                + "256 bytes."
        )
    }
    return name
}

private func readClient(_ arguments: Arguments) throws(StateError) -> Command.ClientCommand {
    let counts = ["setname": 1, "getname": 0, "setinfo": 2, "id": 0, "info": 0, "list": 0]
    let name = arguments[0].text.lowercased()
    if let count = counts[name], arguments.count != count + 1 {
        throw StateError(.err, "wrong number of arguments for 'client|\(name)' command")
    }
    switch name {
    case "setname": return .setName(try clientName(arguments[1]))
    case "getname": return .getName
    case "setinfo": return try readLibrary(arguments)
    case "id": return .identify
    case "info": return .information
    case "list": return .list
    default: break
    }
    throw unknownSubcommand(
        arguments[0],
        of: "CLIENT",
        known: "SETNAME name, GETNAME, SETINFO LIB-NAME|LIB-VER text, ID, INFO or LIST"
    )
}

private func readLibrary(
    _ arguments: Arguments
) throws(StateError) -> Command.ClientCommand {
    let isVersion = arguments.isWord(1, "LIB-VER")
    guard isVersion || arguments.isWord(1, "LIB-NAME") else {
        throw StateError(.err, "Unrecognized option \(StateError.quoted(arguments[1]))")
    }
    let text = arguments[2]
    guard text.count <= 256, text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
        throw StateError(
            .err,
            "\(isVersion ? "lib-ver" : "lib-name") cannot contain spaces, newlines or special "
                + "characters."
        )
    }
    return .setLibrary(text, isVersion: isVersion)
}

private func readDescribe(_ arguments: Arguments) throws(StateError) -> Command.DescribeCommand {
    guard arguments.count > 0 else { return .all }
    if arguments.isWord(0, "COUNT"), arguments.count == 1 { return .count }
    if arguments.isWord(0, "DOCS") { return .documentation(arguments.dropFirst(1)) }
    if arguments.isWord(0, "INFO") { return .information(arguments.dropFirst(1)) }
    if arguments.isWord(0, "LIST"), arguments.count == 1 { return .list }
    throw unknownSubcommand(arguments[0], of: "COMMAND", known: "COUNT, DOCS, INFO or LIST")
}
