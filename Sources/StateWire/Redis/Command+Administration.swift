package import StateModel

extension Command {
    /// Redis's commands about the server.
    package enum AdministrationCommand {
        case memoryStatistics
        case memoryDoctor
        case role
        case lastSave
        /// WAIT.
        case awaitReplicas
        /// WAITAOF; the number of local stores that must have everything.
        case awaitStorage(locals: Int64)
        case listModules
        /// STATE.METRICS.
        case metrics
        case top
        /// Milliseconds since 1970.
        case moment(Int64)
        case access(AccessCommand)
        case slowLog(SlowLogCommand)
        case latency(LatencyCommand)
        case monitor
        /// CONFIG RESETSTAT.
        case resetStatistics
    }

    /// ACL.
    package enum AccessCommand {
        case whoAmI
        case categories
        case category(Bytes)
        case list
        case users
    }

    /// SLOWLOG.
    package enum SlowLogCommand {
        /// -1 for all.
        case get(count: Int64)
        case length
        case reset
    }

    /// LATENCY.
    package enum LatencyCommand {
        /// Of these commands; of all if there are none.
        case histogram(Arguments)
        case latest
        case history(Bytes)
        case reset(Arguments)
        case doctor
    }

    /// EVAL and SCRIPT.
    package enum ScriptCommand {
        /// The text, or the SHA-1 of it.
        case run(text: Bytes, keys: Arguments, Arguments)
        case runNamed(Bytes, keys: Arguments, Arguments)
        case load(Bytes)
        case exist(Arguments)
        case flush
    }
}

/// Parses a command about the server.
func readAdministration(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .role: return .administer(.role)
    case .lastsave: return .administer(.lastSave)
    case .monitor: return .administer(.monitor)
    case .wait:
        try checkTimes(rest)
        return .administer(.awaitReplicas)
    case .waitaof:
        try checkTimes(rest)
        let locals = try integer(rest[0])
        guard locals <= 1 else { throw StateError(.err, "value is out of range, must be 0 or 1") }
        return .administer(.awaitStorage(locals: locals))
    case .module:
        if rest.isWord(0, "HELP"), rest.count == 1 { return .help(.module) }
        guard rest.isWord(0, "LIST"), rest.count == 1 else {
            throw unknownSubcommand(rest[0], of: "MODULE", known: "LIST")
        }
        return .administer(.listModules)
    case .acl: return try readAccess(rest)
    case .slowlog: return try readSlowLog(rest)
    case .latency: return try readLatency(rest)
    case .eval, .evalRo, .evalsha, .evalshaRo: return try readEvaluation(verb, rest)
    case .script: return try readScript(rest)
    default: preconditionFailure("\(verb.name) is not about the server")
    }
}

private func checkTimes(_ arguments: Arguments) throws(StateError) {
    for index in 0..<arguments.count {
        let isTimeout = index == arguments.count - 1
        guard let number = arguments[index].decimal else {
            throw StateError(
                .err,
                isTimeout
                    ? "timeout is not an integer or out of range"
                    : "value is not an integer or out of range"
            )
        }
        guard number >= 0 else {
            throw StateError(
                .err,
                isTimeout ? "timeout is negative" : "value is out of range, must be positive"
            )
        }
    }
}

private func readAccess(_ arguments: Arguments) throws(StateError) -> Command {
    let isAlone = arguments.count == 1
    if isAlone, arguments.isWord(0, "WHOAMI") { return .administer(.access(.whoAmI)) }
    if isAlone, arguments.isWord(0, "LIST") { return .administer(.access(.list)) }
    if isAlone, arguments.isWord(0, "USERS") { return .administer(.access(.users)) }
    if isAlone, arguments.isWord(0, "HELP") { return .help(.acl) }
    guard arguments.isWord(0, "CAT") else {
        throw unknownSubcommand(
            arguments[0],
            of: "ACL",
            known: "WHOAMI, CAT, LIST or USERS; the rules of the configuration say who may do what"
        )
    }
    guard arguments.count <= 2 else { throw wrongArity("acl", arguments[0]) }
    return .administer(.access(isAlone ? .categories : .category(arguments[1])))
}

private func readSlowLog(_ arguments: Arguments) throws(StateError) -> Command {
    let isAlone = arguments.count == 1
    if isAlone, arguments.isWord(0, "LEN") { return .administer(.slowLog(.length)) }
    if isAlone, arguments.isWord(0, "RESET") { return .administer(.slowLog(.reset)) }
    if isAlone, arguments.isWord(0, "HELP") { return .help(.slowlog) }
    guard arguments.isWord(0, "GET"), arguments.count <= 2 else {
        throw unknownSubcommand(arguments[0], of: "SLOWLOG", known: "GET [count], LEN or RESET")
    }
    let count = isAlone ? 10 : try integer(arguments[1])
    guard count >= -1 else {
        throw StateError(.err, "count should be greater than or equal to -1")
    }
    return .administer(.slowLog(.get(count: count)))
}

private func readLatency(_ arguments: Arguments) throws(StateError) -> Command {
    let isAlone = arguments.count == 1
    if arguments.isWord(0, "HISTOGRAM") {
        return .administer(.latency(.histogram(arguments.dropFirst(1))))
    }
    if arguments.isWord(0, "RESET") { return .administer(.latency(.reset(arguments.dropFirst(1)))) }
    if isAlone, arguments.isWord(0, "LATEST") { return .administer(.latency(.latest)) }
    if isAlone, arguments.isWord(0, "DOCTOR") { return .administer(.latency(.doctor)) }
    if isAlone, arguments.isWord(0, "HELP") { return .help(.latency) }
    if arguments.isWord(0, "HISTORY"), arguments.count == 2 {
        return .administer(.latency(.history(arguments[1])))
    }
    throw unknownSubcommand(
        arguments[0],
        of: "LATENCY",
        known: "HISTOGRAM [command ...], LATEST, HISTORY event, RESET [event ...] or DOCTOR"
    )
}

private func readEvaluation(_ verb: Verb, _ arguments: Arguments) throws(StateError) -> Command {
    let count = try integer(arguments[1])
    guard count >= 0 else { throw StateError(.err, "Number of keys can't be negative") }
    let rest = arguments.dropFirst(2)
    guard count <= rest.count else {
        throw StateError(.err, "Number of keys can't be greater than number of args")
    }
    let keys = rest.prefix(Int(count))
    let others = rest.dropFirst(Int(count))
    let isNamed = verb.name == .evalsha || verb.name == .evalshaRo
    return .script(
        isNamed
            ? .runNamed(arguments[0], keys: keys, others)
            : .run(text: arguments[0], keys: keys, others)
    )
}

private func readScript(_ arguments: Arguments) throws(StateError) -> Command {
    if arguments.isWord(0, "LOAD"), arguments.count == 2 { return .script(.load(arguments[1])) }
    if arguments.isWord(0, "EXISTS"), arguments.count > 1 {
        return .script(.exist(arguments.dropFirst(1)))
    }
    if arguments.isWord(0, "HELP"), arguments.count == 1 { return .help(.script) }
    if arguments.isWord(0, "FLUSH"), arguments.count <= 2 {
        let isPlain = arguments.count == 1
        guard isPlain || arguments.isWord(1, "ASYNC") || arguments.isWord(1, "SYNC") else {
            throw StateError(.err, "SCRIPT FLUSH only support SYNC|ASYNC option")
        }
        return .script(.flush)
    }
    throw unknownSubcommand(
        arguments[0],
        of: "SCRIPT",
        known: "LOAD script, EXISTS sha1 [sha1 ...] or FLUSH"
    )
}
