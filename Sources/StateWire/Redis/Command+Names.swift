package import StateModel

extension Command {
    /// Redis's commands about the names of keys, and about how keys are kept.
    package enum KeyCommand {
        case rename(from: Bytes, to: Bytes, onlyIfAbsent: Bool)
        case copy(from: Bytes, to: Bytes, replaces: Bool)
        case randomKey
        case object(ObjectQuestion, Bytes)
        case memoryUsage(Bytes)
        /// FLUSHALL and FLUSHDB.
        case flush
        case dump(Bytes)
        case restore(key: Bytes, dump: Bytes, Expiry, replaces: Bool)
    }

    /// What OBJECT is asked for.
    package enum ObjectQuestion {
        case encoding
        case idleTime
        case referenceCount
    }
}

/// Parses a command about names of keys.
func readNameCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .rename, .renamenx:
        let isCareful = verb.name == .renamenx
        return .name(
            .rename(from: try key(rest[0]), to: try key(rest[1]), onlyIfAbsent: isCareful)
        )
    case .copy: return try readCopy(rest)
    case .touch: return .exists(try checkedKeys(rest))
    case .randomkey: return .name(.randomKey)
    case .object: return try readObject(rest)
    case .memory: return try readMemory(rest)
    case .flushall, .flushdb:
        let isPlain = rest.count == 0
        guard isPlain || rest.count == 1 && (rest.isWord(0, "ASYNC") || rest.isWord(0, "SYNC"))
        else { throw syntaxError() }
        return .name(.flush)
    case .dump: return .name(.dump(try key(rest[0])))
    case .restore: return try readRestore(rest)
    default: preconditionFailure("\(verb.name) is not about names")
    }
}

private func readCopy(_ arguments: Arguments) throws(StateError) -> Command {
    var replaces = false
    var options = OptionCursor(arguments, from: 2)
    while !options.isAtEnd {
        if options.take("REPLACE") {
            replaces = true
        } else if let number = options.value(of: "DB") {
            try checkDatabase(number)
        } else {
            throw syntaxError()
        }
    }
    let (source, target) = (try key(arguments[0]), try key(arguments[1]))
    guard !source.isEqual(to: target) else {
        throw StateError(.err, "source and destination objects are the same")
    }
    return .name(.copy(from: source, to: target, replaces: replaces))
}

private func readObject(_ arguments: Arguments) throws(StateError) -> Command {
    if arguments.isWord(0, "HELP"), arguments.count == 1 { return .help(.object) }
    let questions: [(StaticString, Command.ObjectQuestion)] = [
        ("ENCODING", .encoding), ("IDLETIME", .idleTime), ("REFCOUNT", .referenceCount),
    ]
    let isFrequency = arguments.isWord(0, "FREQ")
    let question = questions.first { arguments.isWord(0, $0.0) }?.1
    guard isFrequency || question != nil else {
        throw unknownSubcommand(
            arguments[0],
            of: "OBJECT",
            known: "ENCODING, IDLETIME or REFCOUNT and a key"
        )
    }
    guard arguments.count == 2 else { throw wrongArity("object", arguments[0]) }
    let name = try key(arguments[1])
    guard let question else {
        throw StateError(
            .err,
            "An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
                + "that when switching between policies at runtime LRU and LFU data will take some "
                + "time to adjust."
        )
    }
    return .name(.object(question, name))
}

private func readMemory(_ arguments: Arguments) throws(StateError) -> Command {
    let isAlone = arguments.count == 1
    if arguments.isWord(0, "HELP"), isAlone { return .help(.memory) }
    if arguments.isWord(0, "STATS"), isAlone { return .administer(.memoryStatistics) }
    if arguments.isWord(0, "DOCTOR"), isAlone { return .administer(.memoryDoctor) }
    guard arguments.isWord(0, "USAGE") else {
        throw unknownSubcommand(arguments[0], of: "MEMORY", known: "USAGE key, STATS or DOCTOR")
    }
    guard arguments.count > 1 else { throw wrongArity("memory", arguments[0]) }
    var options = OptionCursor(arguments, from: 2)
    while !options.isAtEnd {
        guard let number = options.value(of: "SAMPLES"), try integer(number) >= 0 else {
            throw syntaxError()
        }
    }
    return .name(.memoryUsage(try key(arguments[1])))
}

private func readRestore(_ arguments: Arguments) throws(StateError) -> Command {
    var (replaces, isAbsolute) = (false, false)
    var options = OptionCursor(arguments, from: 3)
    while !options.isAtEnd {
        if options.take("REPLACE") {
            replaces = true
        } else if options.take("ABSTTL") {
            isAbsolute = true
        } else if let number = options.value(of: "IDLETIME") ?? options.value(of: "FREQ") {
            guard try integer(number) >= 0 else {
                throw StateError(.err, "Invalid IDLETIME value, must be >= 0")
            }
        } else {
            throw syntaxError()
        }
    }
    let time = try integer(arguments[1])
    guard time >= 0 else { throw StateError(.err, "Invalid TTL value, must be >= 0") }
    let option = ExpiryOption.time(arguments[1], .milliseconds, isRelative: !isAbsolute)
    return .name(
        .restore(
            key: try key(arguments[0]),
            dump: arguments[2],
            time == 0 ? .ruled : try option.expiry("restore"),
            replaces: replaces
        )
    )
}

/// Refuses every database but 0.
func checkDatabase(_ number: Bytes) throws(StateError) {
    guard try integer(number) == 0 else {
        throw StateError(.err, "DB index is out of range: there is one database, 0")
    }
}

/// Refuses a wrong number of arguments of a subcommand, in the words of Redis.
func wrongArity(_ verb: String, _ subcommand: Bytes) -> StateError {
    let name = subcommand.prefix(32).map { Character(UnicodeScalar($0)) }
    return StateError(
        .err,
        "wrong number of arguments for '\(verb)|\(String(name).lowercased())' command"
    )
}
