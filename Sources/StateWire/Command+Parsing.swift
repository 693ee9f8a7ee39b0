package import StateEngine

extension Command {
    /// Reads a command of `verb`, whose number of arguments fits.
    ///
    /// - Parameters:
    ///   - verb: What the first argument names.
    ///   - arguments: All arguments, the name among them.
    /// - Throws: ``StateError``, in Redis's words where Redis has the command.
    package init(_ verb: Verb, _ arguments: Arguments) throws(StateError) {
        let rest = arguments.dropFirst(1)
        switch verb.name {
        case .get: self = .get(try key(rest[0]))
        case .set: self = try readSet(rest)
        case .ping:
            guard rest.count <= 1 else { throw wrongArity(verb) }
            self = .ping(rest.count == 1 ? rest[0] : nil)
        case .incr: self = .add(key: try key(rest[0]), 1)
        case .decr: self = .add(key: try key(rest[0]), -1)
        case .incrby: self = .add(key: try key(rest[0]), try integer(rest[1]))
        case .decrby:
            let number = try integer(rest[1])
            guard number != .min else { throw StateError(.err, "decrement would overflow") }
            self = .add(key: try key(rest[0]), -number)
        case .mset, .msetnx:
            guard rest.count % 2 == 0 else { throw wrongArity(verb) }
            try checkKeys(rest, step: 2)
            self = .multiSet(rest, onlyIfAllAbsent: verb.name == .msetnx)
        case .mget: self = .multiGet(try checkKeys(rest))
        case .exists: self = .exists(try checkKeys(rest))
        case .del, .unlink: self = .delete(try checkKeys(rest))
        case .watch: self = .watchKeys(try checkKeys(rest))
        case .getdel: self = .getDelete(try key(rest[0]))
        case .type: self = .type(try key(rest[0]))
        case .strlen: self = .length(try key(rest[0]))
        case .append: self = .append(key: try key(rest[0]), suffix: rest[1])
        case .keys: self = .keys(rest[0])
        case .scan: self = try readScan(rest)
        case .dbsize: self = .databaseSize
        case .multi: self = .multi
        case .exec: self = .execute
        case .discard: self = .discard
        case .unwatch: self = .unwatchKeys
        case .stateGet: self = .stateGet(try key(rest[0]))
        case .stateSet: self = try readStateSet(rest)
        case .stateApply: self = try readApply(rest)
        case .stateDelete: self = try readStateDelete(rest)
        case .stateList: self = try readList(rest)
        case .stateWatch: self = try readWatch(rest)
        case .stateUnwatch: self = .stateUnwatch(try integer(rest[0]))
        case .stateHistory: self = try readHistory(rest)
        case .stateCompact: self = try readCompact(rest)
        case .stateStatus: self = .stateStatus
        case .hello, .auth, .echo, .quit, .reset, .select, .client, .info, .command, .config, .time:
            self = try readConnectionCommand(verb, rest)
        }
    }
}

// MARK: Types

private func key(_ bytes: Bytes) throws(StateError) -> Bytes {
    if let fault = Key.fault(of: bytes) { throw fault.error(for: bytes) }
    return bytes
}

@discardableResult
private func checkKeys(_ arguments: Arguments, step: Int = 1) throws(StateError) -> Arguments {
    var index = 0
    while index < arguments.count {
        _ = try key(arguments[index])
        index += step
    }
    return arguments
}

private func integer(_ bytes: Bytes) throws(StateError) -> Int64 {
    guard let number = bytes.decimal else {
        throw StateError(.err, "value is not an integer or out of range")
    }
    return number
}

/// A revision that a condition names: 0 for an absent entry.
private func revision(_ bytes: Bytes) throws(StateError) -> Int64 {
    guard let number = bytes.decimal, number >= 0 else {
        throw StateError(.err, "revision \(StateError.quoted(bytes)) is not a number from 0 on")
    }
    return number
}

package func wrongArity(_ verb: Verb) -> StateError {
    StateError(.err, "wrong number of arguments for '\(verb.name.rawValue)' command")
}

private func syntaxError(_ what: String = "") -> StateError {
    StateError(.err, what.isEmpty ? "syntax error" : "syntax error: \(what)")
}

// MARK: Redis's verbs

private func readSet(_ arguments: Arguments) throws(StateError) -> Command {
    var condition: Condition?
    var returnsOld = false
    for index in 2..<max(2, arguments.count) {
        if arguments.isWord(index, "NX"), condition == nil {
            condition = .isAbsent
        } else if arguments.isWord(index, "XX"), condition == nil {
            condition = .isPresent
        } else if arguments.isWord(index, "GET") {
            returnsOld = true
        } else {
            throw syntaxError()
        }
    }
    return .set(
        key: try key(arguments[0]),
        value: arguments[1],
        condition: condition,
        returnsOld: returnsOld
    )
}

private func readScan(_ arguments: Arguments) throws(StateError) -> Command {
    guard let cursor = UInt64(arguments[0].text) else { throw StateError(.err, "invalid cursor") }
    var match: Bytes?
    var count = 10
    var index = 1
    while index < arguments.count {
        guard index + 1 < arguments.count else { throw syntaxError() }
        if arguments.isWord(index, "MATCH") {
            match = arguments[index + 1]
        } else if arguments.isWord(index, "COUNT") {
            let wanted = try integer(arguments[index + 1])
            guard wanted > 0 else { throw syntaxError() }
            count = Int(min(wanted, 1 << 20))
        } else {
            throw syntaxError()
        }
        index += 2
    }
    return .scan(cursor: cursor, match: match, count: count)
}

// MARK: The connection's verbs

private func readConnectionCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
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
        guard rest.isWord(0, "GET"), rest.count > 1 else {
            throw unknownSubcommand(rest[0], of: "CONFIG", known: "GET")
        }
        return .configuration(rest.dropFirst(1))
    case .time: return .time
    default: preconditionFailure("\(verb.name) is no verb of the connection")
    }
}

private func unknownSubcommand(_ name: Bytes, of verb: String, known: String) -> StateError {
    StateError(.err, "unknown subcommand \(StateError.quoted(name)). Try \(verb) with \(known)")
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
    var index = 1
    while index < arguments.count {
        if arguments.isWord(index, "AUTH"), index + 2 < arguments.count {
            user = arguments[index + 1]
            index += 3
        } else if arguments.isWord(index, "SETNAME"), index + 1 < arguments.count {
            client = try clientName(arguments[index + 1])
            index += 2
        } else {
            throw syntaxError("in HELLO option \(StateError.quoted(arguments[index]))")
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
    let rest = arguments.count - 1
    if arguments.isWord(0, "SETNAME"), rest == 1 { return .setName(try clientName(arguments[1])) }
    if arguments.isWord(0, "GETNAME"), rest == 0 { return .getName }
    if arguments.isWord(0, "SETINFO"), rest == 2 {
        guard arguments.isWord(1, "LIB-NAME") || arguments.isWord(1, "LIB-VER") else {
            throw StateError(.err, "Unrecognized option \(StateError.quoted(arguments[1]))")
        }
        return .setInformation
    }
    if arguments.isWord(0, "ID"), rest == 0 { return .identify }
    if arguments.isWord(0, "INFO"), rest == 0 { return .information }
    if arguments.isWord(0, "LIST"), rest == 0 { return .list }
    throw unknownSubcommand(
        arguments[0],
        of: "CLIENT",
        known: "SETNAME name, GETNAME, SETINFO LIB-NAME|LIB-VER text, ID, INFO or LIST"
    )
}

private func readDescribe(_ arguments: Arguments) throws(StateError) -> Command.DescribeCommand {
    guard arguments.count > 0 else { return .all }
    if arguments.isWord(0, "COUNT"), arguments.count == 1 { return .count }
    if arguments.isWord(0, "DOCS") { return .documentation(arguments.dropFirst(1)) }
    if arguments.isWord(0, "INFO") { return .information(arguments.dropFirst(1)) }
    if arguments.isWord(0, "LIST"), arguments.count == 1 { return .list }
    throw unknownSubcommand(arguments[0], of: "COMMAND", known: "COUNT, DOCS, INFO or LIST")
}

// MARK: Our own verbs

private func readStateSet(_ arguments: Arguments) throws(StateError) -> Command {
    var conditions = Command.Conditions()
    var durability: Durability?
    var index = 2
    while index < arguments.count {
        if arguments.isWord(index, "NX"), conditions.presence == nil {
            conditions.presence = .isAbsent
        } else if arguments.isWord(index, "XX"), conditions.presence == nil {
            conditions.presence = .isPresent
        } else if arguments.isWord(index, "IFREV"), index + 1 < arguments.count {
            index += 1
            conditions.revision = .revision(try revision(arguments[index]))
        } else if arguments.isWord(index, "IFVAL"), index + 1 < arguments.count {
            index += 1
            conditions.value = .value(arguments[index])
        } else if arguments.isWord(index, "DURABILITY"), durability == nil,
            index + 1 < arguments.count
        {
            index += 1
            guard let level = Durability(arguments[index].text.lowercased()) else {
                throw StateError(
                    .err,
                    "DURABILITY is memory, written or synced, not "
                        + StateError.quoted(arguments[index])
                )
            }
            durability = level
        } else {
            throw syntaxError("in option \(StateError.quoted(arguments[index])) of STATE.SET")
        }
        index += 1
    }
    return .stateSet(
        key: try key(arguments[0]),
        value: arguments[1],
        conditions: conditions,
        durability: durability ?? .synced
    )
}

private func readApply(_ arguments: Arguments) throws(StateError) -> Command {
    guard let count = arguments[0].decimal, count >= 0, count <= 1_000_000 else {
        throw StateError(.err, "STATE.APPLY takes a number of steps from 0 to 1000000 first")
    }
    var steps: [Command.ApplyStep] = []
    var index = 1
    func has(_ more: Int) -> Bool { index + more < arguments.count }
    func condition(at place: Int) throws(StateError) -> Int64? {
        guard place + 1 < arguments.count, arguments.isWord(place, "IFREV") else { return nil }
        return try revision(arguments[place + 1])
    }
    while index < arguments.count {
        if arguments.isWord(index, "SET"), has(2) {
            let condition = try condition(at: index + 3)
            steps.append(
                .set(try key(arguments[index + 1]), arguments[index + 2], revision: condition)
            )
            index += condition == nil ? 3 : 5
        } else if arguments.isWord(index, "DELETE"), has(1) {
            let condition = try condition(at: index + 2)
            steps.append(.delete(try key(arguments[index + 1]), revision: condition))
            index += condition == nil ? 2 : 4
        } else if arguments.isWord(index, "CHECK"), has(2) {
            let revision = try revision(arguments[index + 2])
            steps.append(.check(try key(arguments[index + 1]), revision: revision))
            index += 3
        } else {
            throw syntaxError("in step \(steps.count + 1) of STATE.APPLY")
        }
    }
    guard steps.count == Int(count) else {
        throw StateError(.err, "STATE.APPLY announces \(count) steps and has \(steps.count)")
    }
    return .stateApply(steps)
}

private func readStateDelete(_ arguments: Arguments) throws(StateError) -> Command {
    let isDryRun = arguments.isWord(arguments.count - 1, "DRYRUN")
    let patterns = isDryRun ? arguments.prefix(arguments.count - 1) : arguments
    guard patterns.count > 0 else { throw syntaxError("STATE.DELETE takes a pattern") }
    return .stateDelete(patterns, isDryRun: isDryRun)
}

private func listLimit(_ bytes: Bytes) throws(StateError) -> Int {
    guard let number = bytes.decimal, number >= 0 else {
        throw StateError(.err, "LIMIT \(StateError.quoted(bytes)) is not a number from 0 on")
    }
    return Int(number)
}

private func readList(_ arguments: Arguments) throws(StateError) -> Command {
    var after: Bytes?
    var limit = Int.max
    var form: Command.ListForm?
    var index = 1
    while index < arguments.count {
        if arguments.isWord(index, "AFTER"), index + 1 < arguments.count {
            index += 1
            after = arguments[index]
        } else if arguments.isWord(index, "LIMIT"), index + 1 < arguments.count {
            index += 1
            limit = try listLimit(arguments[index])
        } else if arguments.isWord(index, "LONG"), form == nil {
            form = .long
        } else if arguments.isWord(index, "KEYS"), form == nil {
            form = .keys
        } else if arguments.isWord(index, "COUNT"), form == nil {
            form = .count
        } else {
            throw syntaxError("in option \(StateError.quoted(arguments[index])) of STATE.LIST")
        }
        index += 1
    }
    return .stateList(pattern: arguments[0], after: after, limit: limit, form: form ?? .entries)
}

private func readHistory(_ arguments: Arguments) throws(StateError) -> Command {
    let key = try key(arguments[0])
    if arguments.count == 1 { return .stateHistory(key, limit: .max) }
    guard arguments.count == 3, arguments.isWord(1, "LIMIT") else {
        throw syntaxError("STATE.HISTORY takes a key and LIMIT n")
    }
    return .stateHistory(key, limit: try listLimit(arguments[2]))
}

private func readCompact(_ arguments: Arguments) throws(StateError) -> Command {
    var rest = arguments
    var revision: Int64?
    var shrinks = false
    while rest.count > 0 {
        if rest.isWord(0, "SHRINK"), !shrinks {
            shrinks = true
            rest = rest.dropFirst(1)
        } else if rest.isWord(0, "TO"), rest.count > 1, revision == nil {
            let number = try integer(rest[1])
            guard number >= 0 else {
                throw StateError(.err, "TO takes a revision of at least 0, not \(number)")
            }
            revision = number
            rest = rest.dropFirst(2)
        } else {
            throw syntaxError("STATE.COMPACT takes TO revision and SHRINK")
        }
    }
    return .stateCompact(revision: revision, shrinks: shrinks)
}

private func readWatch(_ arguments: Arguments) throws(StateError) -> Command {
    let words: [(StaticString, Command.WatchOptions)] = [
        ("SNAPSHOT", .snapshot), ("PREVIOUS", .previous), ("BY", .by),
    ]
    var options: Command.WatchOptions = []
    var end = arguments.count
    // Options stand last; whatever stands before them is a pattern.
    while end > 0, let option = words.first(where: { arguments.isWord(end - 1, $0.0) })?.1 {
        options.insert(option)
        end -= 1
    }
    guard end > 0 else { throw syntaxError("STATE.WATCH takes a pattern") }
    // What another version of the daemon reads as an option is not taken for a key here, silently.
    for index in 0..<end where arguments.isWord(index, "FROM") || arguments.isWord(index, "LATEST")
    {
        let word = arguments[index].text
        throw syntaxError("STATE.WATCH has no option '\(word)'; the key is written '\\\(word)'")
    }
    return .stateWatch(arguments.prefix(end), options)
}
