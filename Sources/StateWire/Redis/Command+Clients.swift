package import StateModel

extension Command {
    package enum ClientCommand {
        case setName(Bytes)
        case getName
        case setLibrary(Bytes, isVersion: Bool)
        case identify
        case information
        case list(ClientFilter)
        case kill(ClientFilter, isOld: Bool)
        case reply(ReplyMode)
        /// NO-EVICT and NO-TOUCH.
        case accept
        case pause(milliseconds: Int64, onlyWrites: Bool)
        case unpause
        case unblock(Int64, withError: Bool)
        /// CLIENT TRACKING; nil ends it.
        case track(TrackingRequest?)
        case caching(Bool)
        case redirection
        case trackingInformation
    }

    /// Which clients a command is about; nil is every client.
    package struct ClientFilter {
        package var numbers: [Int64]?
        package var address: Bytes?
        package var localAddress: Bytes?
        package var user: Bytes?
        package var type: ClientType?
        /// Seconds since it connected, at least.
        package var age: Int64?
        /// Whether the connection that asks is left out.
        package var skipsSelf = false
    }

    package enum ClientType {
        case normal
        case subscriber
        /// Replicas and masters, which do not exist.
        case none
    }

    package enum ReplyMode {
        case on
        case off
        case skip
    }

    /// The options of CLIENT TRACKING ON.
    package struct TrackingRequest {
        package var redirection: Int64?
        package var isBroadcast = false
        package var prefixes: [Bytes] = []
        /// OPTIN or OPTOUT.
        package var isOptional: Bool?
        package var leavesOutOwn = false
    }
}

func clientName(_ name: Bytes) throws(StateError) -> Bytes {
    guard name.count <= 256, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
        throw StateError(
            .err,
            "Client names cannot contain spaces, newlines or special characters, nor more than "
                + "256 bytes."
        )
    }
    return name
}

/// Parses CLIENT.
func readClient(_ arguments: Arguments) throws(StateError) -> Command {
    let counts = [
        "setname": 1, "getname": 0, "setinfo": 2, "id": 0, "info": 0, "reply": 1, "no-evict": 1,
        "no-touch": 1, "unpause": 0, "caching": 1, "getredir": 0, "trackinginfo": 0, "help": 0,
    ]
    let name = arguments[0].text.lowercased()
    if let count = counts[name], arguments.count != count + 1 {
        throw wrongArity("client", arguments[0])
    }
    let rest = arguments.dropFirst(1)
    switch name {
    case "setname": return .client(.setName(try clientName(rest[0])))
    case "getname": return .client(.getName)
    case "setinfo": return .client(try readLibrary(rest))
    case "id": return .client(.identify)
    case "info": return .client(.information)
    case "list": return .client(.list(try readClientFilter(rest, isOfList: true)))
    case "kill" where rest.count > 0: return .client(try readKill(rest))
    case "reply": return .client(.reply(try readReplyMode(rest)))
    case "no-evict", "no-touch":
        _ = try readSwitch(rest)
        return .client(.accept)
    case "pause" where (1...2).contains(rest.count): return .client(try readPause(rest))
    case "unpause": return .client(.unpause)
    case "unblock" where (1...2).contains(rest.count): return .client(try readUnblock(rest))
    case "tracking" where rest.count > 0: return .client(try readTracking(rest))
    case "caching":
        guard rest.isWord(0, "YES") || rest.isWord(0, "NO") else { throw syntaxError() }
        return .client(.caching(rest.isWord(0, "YES")))
    case "getredir": return .client(.redirection)
    case "trackinginfo": return .client(.trackingInformation)
    case "help": return .help(.client)
    case "kill", "pause", "unblock", "tracking": throw wrongArity("client", arguments[0])
    default: break
    }
    throw unknownSubcommand(
        arguments[0],
        of: "CLIENT",
        known: "SETNAME, GETNAME, SETINFO, ID, INFO, LIST, KILL, REPLY, NO-EVICT, NO-TOUCH, PAUSE, "
            + "UNPAUSE, UNBLOCK, TRACKING, CACHING, GETREDIR or TRACKINGINFO"
    )
}

private func readLibrary(_ arguments: Arguments) throws(StateError) -> Command.ClientCommand {
    let isVersion = arguments.isWord(0, "LIB-VER")
    guard isVersion || arguments.isWord(0, "LIB-NAME") else {
        throw StateError(.err, "Unrecognized option \(StateError.quoted(arguments[0]))")
    }
    let text = arguments[1]
    guard text.count <= 256, text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
        throw StateError(
            .err,
            "\(isVersion ? "lib-ver" : "lib-name") cannot contain spaces, newlines or special "
                + "characters."
        )
    }
    return .setLibrary(text, isVersion: isVersion)
}

private func readSwitch(_ arguments: Arguments) throws(StateError) -> Bool {
    if arguments.isWord(0, "ON") { return true }
    guard arguments.isWord(0, "OFF") else { throw syntaxError() }
    return false
}

private func readReplyMode(_ arguments: Arguments) throws(StateError) -> Command.ReplyMode {
    if arguments.isWord(0, "SKIP") { return .skip }
    return try readSwitch(arguments) ? .on : .off
}

private func readKill(_ arguments: Arguments) throws(StateError) -> Command.ClientCommand {
    guard arguments.count > 1 else {
        var filter = Command.ClientFilter()
        filter.address = arguments[0]
        return .kill(filter, isOld: true)
    }
    return .kill(try readClientFilter(arguments, isOfList: false), isOld: false)
}

private func readClientFilter(
    _ arguments: Arguments,
    isOfList: Bool
) throws(StateError) -> Command.ClientFilter {
    var filter = Command.ClientFilter()
    filter.skipsSelf = !isOfList
    var options = OptionCursor(arguments)
    while !options.isAtEnd {
        if let type = options.value(of: "TYPE") {
            filter.type = try clientType(type)
        } else if let number = options.value(of: "ID") {
            filter.numbers = [try clientNumber(number)]
            while isOfList, !options.isAtEnd {
                filter.numbers?.append(try clientNumber(options.takeNext()))
            }
        } else if !isOfList, let address = options.value(of: "ADDR") {
            filter.address = address
        } else if !isOfList, let address = options.value(of: "LADDR") {
            filter.localAddress = address
        } else if !isOfList, let user = options.value(of: "USER") {
            filter.user = user
        } else if !isOfList, let age = options.value(of: "MAXAGE") {
            filter.age = try integer(age)
        } else if !isOfList, let word = options.value(of: "SKIPME") {
            guard word.isWord("YES") || word.isWord("NO") else { throw syntaxError() }
            filter.skipsSelf = word.isWord("YES")
        } else {
            throw syntaxError()
        }
    }
    return filter
}

private func clientNumber(_ bytes: Bytes) throws(StateError) -> Int64 {
    guard let number = bytes.decimal, number > 0 else {
        throw StateError(.err, "client-id should be greater than 0")
    }
    return number
}

private func clientType(_ bytes: Bytes) throws(StateError) -> Command.ClientType {
    switch bytes.text.lowercased() {
    case "normal": return .normal
    case "pubsub": return .subscriber
    case "master", "replica", "slave": return .none
    default:
        throw StateError(.err, "Unknown client type \(StateError.quoted(bytes))")
    }
}

private func readPause(_ arguments: Arguments) throws(StateError) -> Command.ClientCommand {
    guard let time = arguments[0].decimal else {
        throw StateError(.err, "timeout is not an integer or out of range")
    }
    guard time >= 0 else { throw StateError(.err, "timeout is negative") }
    guard arguments.count > 1 else { return .pause(milliseconds: time, onlyWrites: false) }
    guard arguments.isWord(1, "WRITE") || arguments.isWord(1, "ALL") else {
        throw StateError(.err, "CLIENT PAUSE mode must be WRITE or ALL")
    }
    return .pause(milliseconds: time, onlyWrites: arguments.isWord(1, "WRITE"))
}

private func readUnblock(_ arguments: Arguments) throws(StateError) -> Command.ClientCommand {
    let number = try integer(arguments[0])
    guard arguments.count > 1 else { return .unblock(number, withError: false) }
    guard arguments.isWord(1, "TIMEOUT") || arguments.isWord(1, "ERROR") else {
        throw StateError(.err, "CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    }
    return .unblock(number, withError: arguments.isWord(1, "ERROR"))
}

private func readTracking(_ arguments: Arguments) throws(StateError) -> Command.ClientCommand {
    let isOn = try readSwitch(arguments)
    var request = Command.TrackingRequest()
    var options = OptionCursor(arguments, from: 1)
    while !options.isAtEnd {
        if options.take("BCAST") {
            request.isBroadcast = true
        } else if request.isOptional != false, options.take("OPTIN") {
            request.isOptional = true
        } else if request.isOptional != true, options.take("OPTOUT") {
            request.isOptional = false
        } else if options.take("NOLOOP") {
            request.leavesOutOwn = true
        } else if let prefix = options.value(of: "PREFIX") {
            request.prefixes.append(prefix)
        } else if let number = options.value(of: "REDIRECT") {
            guard request.redirection == nil else {
                throw StateError(.err, "A client can only redirect to a single other client")
            }
            request.redirection = try integer(number)
        } else if !options.isAtEnd,
            arguments.isWord(options.index, "OPTIN")
                || arguments.isWord(options.index, "OPTOUT")
        {
            throw StateError(.err, "You can't specify both OPTIN mode and OPTOUT mode")
        } else {
            throw syntaxError()
        }
    }
    guard isOn else { return .track(nil) }
    guard request.isBroadcast || request.prefixes.isEmpty else {
        throw StateError(.err, "PREFIX option requires BCAST mode to be enabled")
    }
    guard !request.isBroadcast || request.isOptional == nil else {
        throw StateError(.err, "OPTIN and OPTOUT are not compatible with BCAST")
    }
    return .track(request)
}
