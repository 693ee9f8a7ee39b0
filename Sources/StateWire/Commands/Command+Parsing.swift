package import StateModel

extension Command {
    /// Parses a command of `verb`, whose number of arguments was checked.
    ///
    /// - Parameters:
    ///   - verb: The verb that the first argument names.
    ///   - arguments: All arguments, including the name.
    /// - Throws: ``StateError``, in the words of Redis if Redis has the command.
    package init(_ verb: Verb, _ arguments: Arguments) throws(StateError) {
        let rest = arguments.dropFirst(1)
        switch verb.name {
        case .get: self = .get(try key(rest[0]))
        case .set: self = try readSet(rest)
        case .setex, .psetex, .getex, .expire, .pexpire, .expireat, .pexpireat, .ttl, .pttl,
            .expiretime, .pexpiretime, .persist:
            self = try readExpiryCommand(verb, rest)
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
            self = .multiSet(
                try checkedKeys(rest, step: 2),
                onlyIfAllAbsent: verb.name == .msetnx
            )
        case .mget: self = .multiGet(try checkedKeys(rest))
        case .exists: self = .exists(try checkedKeys(rest))
        case .del, .unlink: self = .delete(try checkedKeys(rest))
        case .watch: self = .watchKeys(try checkedKeys(rest))
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
        case .setnx, .getset, .getrange, .substr, .setrange, .incrbyfloat, .msetex, .delex,
            .digest:
            self = try readValueCommand(verb, rest)
        case .rename, .renamenx, .copy, .touch, .randomkey, .object, .memory, .flushall,
            .flushdb, .dump, .restore:
            self = try readNameCommand(verb, rest)
        case .role, .wait, .waitaof, .lastsave, .module, .acl, .slowlog, .latency, .monitor,
            .eval, .evalsha, .evalRo, .evalshaRo, .script:
            self = try readAdministration(verb, rest)
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .publish, .pubsub,
            .ssubscribe, .sunsubscribe, .spublish:
            self = try readChannelCommand(verb, rest)
        case .stateGet: self = try readStateGet(rest)
        case .stateSet: self = try readStateSet(rest)
        case .stateApply: self = try readApply(rest)
        case .stateDelete: self = try readStateDelete(rest)
        case .stateList: self = try readList(rest)
        case .stateWatch: self = try readWatch(rest)
        case .stateUnwatch: self = .stateUnwatch(try integer(rest[0]))
        case .stateWatches: self = .stateWatches
        case .stateHistory: self = try readHistory(rest)
        case .stateRevert: self = try readRevert(rest)
        case .stateChanges: self = try readChanges(rest)
        case .stateCompact: self = try readCompact(rest)
        case .stateBackup: self = .stateBackup(try readBackup(rest))
        case .stateStatus: self = .stateStatus
        case .stateMetrics: self = .administer(.metrics)
        case .stateTop: self = .administer(.top)
        case .stateMoment: self = .administer(.moment(try integer(rest[0])))
        case .stateSync: self = .stateSync(isLocal: try readSync(rest))
        case .stateHandler: self = try readHandler(rest)
        case .stateHandlers: self = .stateHandlers
        case .stateReload: self = try readReload(rest)
        case .stateExplain: self = .stateExplain(try key(rest[0]))
        case .stateRules: self = .stateRules
        case .stateDefaults:
            guard rest.count <= 1 else { throw wrongArity(verb) }
            self = .stateDefaults(rest.count == 1 ? rest[0] : nil)
        case .stateCheck: self = try readCheck(rest)
        case .stateClaim:
            guard rest.count <= 1 else { throw wrongArity(verb) }
            self = .stateClaim(rest.count == 1 ? rest[0] : nil)
        case .stateMirror: self = try readMirror(rest)
        case .hello, .auth, .echo, .quit, .reset, .select, .client, .info, .command, .config, .time:
            self = try readConnectionCommand(verb, rest)
        }
    }
}

// MARK: Types

func key(_ bytes: Bytes) throws(StateError) -> Bytes {
    if let fault = Key.fault(of: bytes) { throw fault.error(for: bytes) }
    return bytes
}

/// The arguments, each of which, or each second one, must be a key.
func checkedKeys(_ arguments: Arguments, step: Int = 1) throws(StateError) -> Arguments {
    var index = 0
    while index < arguments.count {
        _ = try key(arguments[index])
        index += step
    }
    return arguments
}

func integer(_ bytes: Bytes) throws(StateError) -> Int64 {
    guard let number = bytes.decimal else {
        throw StateError(.err, "value is not an integer or out of range")
    }
    return number
}

/// A revision; in a condition, 0 means an absent entry.
func revision(_ bytes: Bytes) throws(StateError) -> Int64 {
    try count(bytes, from: 0, "revision")
}

func listLimit(_ bytes: Bytes) throws(StateError) -> Int {
    Int(try count(bytes, from: 0, "LIMIT"))
}

func count(_ bytes: Bytes, from least: Int64, _ name: String) throws(StateError) -> Int64 {
    guard let number = bytes.decimal, number >= least else {
        throw StateError(
            .err,
            "\(name) \(StateError.quoted(bytes)) is not a whole number of at least \(least)"
        )
    }
    return number
}

package func wrongArity(_ verb: Verb) -> StateError {
    StateError(.err, "wrong number of arguments for '\(verb.name.rawValue)' command")
}

func syntaxError(_ what: String = "") -> StateError {
    StateError(.err, what.isEmpty ? "syntax error" : "syntax error: \(what)")
}

func unknownSubcommand(_ name: Bytes, of verb: String, known: String) -> StateError {
    StateError(.err, "unknown subcommand \(StateError.quoted(name)). Try \(verb) with \(known)")
}
