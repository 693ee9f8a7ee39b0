package import StateModel

extension Command {
    /// Redis's commands about parts of values, and about what a value is compared with.
    package enum ValueCommand {
        /// SET with a comparison.
        case set(key: Bytes, value: Bytes, Comparison, Expiry, returnsOld: Bool)
        /// DELEX.
        case delete(key: Bytes, Comparison)
        /// DIGEST.
        case digest(Bytes)
        /// GETRANGE: both ends belong to the range; negative ones count from the end of the value.
        case range(key: Bytes, first: Int64, last: Int64)
        /// SETRANGE.
        case setRange(key: Bytes, offset: Int, Bytes)
        /// INCRBYFLOAT.
        case addFloat(key: Bytes, Bytes)
        /// MSETEX: keys and values.
        case setAll(Arguments, needsPresence: Bool?, Expiry)
        /// EVAL of a script that is known.
        case script(KnownScript, keys: Arguments, Arguments)
    }

    /// What a value must be for a command to change it.
    package enum Comparison {
        /// IFEQ, or IFNE; an absent key differs from every value.
        case value(Bytes, mustBeEqual: Bool)
        /// IFDEQ, or IFDNE: the same with the ``ValueHash`` of a value.
        case digest(UInt64, mustBeEqual: Bool)

        /// Whether it holds for a value; nil is an absent key.
        package func holds(for value: Bytes?) -> Bool {
            switch self {
            case .value(let other, let mustBeEqual):
                (value.map { $0.isEqual(to: other) } ?? false) == mustBeEqual
            case .digest(let digest, let mustBeEqual):
                (value.map { ValueHash.xxh3($0) == digest } ?? false) == mustBeEqual
            }
        }
    }
}

extension OptionCursor {
    /// Takes IFEQ, IFNE, IFDEQ or IFDNE with what is compared.
    mutating func takeComparison() throws(StateError) -> Command.Comparison? {
        if let other = value(of: "IFEQ") { return .value(other, mustBeEqual: true) }
        if let other = value(of: "IFNE") { return .value(other, mustBeEqual: false) }
        if let digest = value(of: "IFDEQ") {
            return .digest(try hexadecimal(digest), mustBeEqual: true)
        }
        if let digest = value(of: "IFDNE") {
            return .digest(try hexadecimal(digest), mustBeEqual: false)
        }
        return nil
    }

    private func hexadecimal(_ digest: Bytes) throws(StateError) -> UInt64 {
        let isHexadecimal =
            digest.count == 16
            && digest.allSatisfy {
                Character(UnicodeScalar($0)).isHexDigit
            }
        guard isHexadecimal, let number = UInt64(digest.text, radix: 16) else {
            throw StateError(.err, "must be exactly 16 hexadecimal characters")
        }
        return number
    }
}

/// Parses a command about a part of a value, or with a comparison.
func readValueCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .setnx: return .multiSet(try checkedKeys(rest, step: 2), onlyIfAllAbsent: true)
    case .getset:
        return .set(
            key: try key(rest[0]),
            value: rest[1],
            condition: nil,
            .ruled,
            returnsOld: true
        )
    case .getrange, .substr:
        let key = try key(rest[0])
        return .value(.range(key: key, first: try integer(rest[1]), last: try integer(rest[2])))
    case .setrange:
        let (key, offset) = (try key(rest[0]), try integer(rest[1]))
        guard offset >= 0 else { throw StateError(.err, "offset is out of range") }
        return .value(.setRange(key: key, offset: Int(offset), rest[2]))
    case .incrbyfloat: return .value(.addFloat(key: try key(rest[0]), rest[1]))
    case .msetex: return try readTimedSets(rest)
    case .delex: return try readComparedDelete(rest)
    case .digest: return .value(.digest(try key(rest[0])))
    default: preconditionFailure("\(verb.name) is not about values")
    }
}

private func readComparedDelete(_ arguments: Arguments) throws(StateError) -> Command {
    let name = try key(arguments[0])
    guard arguments.count > 1 else { return .delete(arguments) }
    var options = OptionCursor(arguments, from: 1)
    guard let comparison = try options.takeComparison(), options.isAtEnd else {
        throw syntaxError()
    }
    return .value(.delete(key: name, comparison))
}

private func readTimedSets(_ arguments: Arguments) throws(StateError) -> Command {
    guard let count = arguments[0].decimal, count > 0 else {
        throw StateError(.err, "invalid numkeys value")
    }
    guard count <= (arguments.count - 1) / 2 else {
        throw StateError(.err, "wrong number of key-value pairs")
    }
    let pairs = arguments.dropFirst(1).prefix(2 * Int(count))
    var needsPresence: Bool?
    var time: ExpiryOption?
    var options = OptionCursor(arguments, from: 1 + pairs.count)
    while !options.isAtEnd {
        if needsPresence != true, options.take("NX") {
            needsPresence = false
        } else if needsPresence != false, options.take("XX") {
            needsPresence = true
        } else if let option = options.takeExpiry(orWord: "KEEPTTL", as: .kept),
            time?.isLike(option) ?? true
        {
            time = option
        } else {
            throw syntaxError()
        }
    }
    return .value(
        .setAll(
            try checkedKeys(pairs, step: 2),
            needsPresence: needsPresence,
            try time?.expiry("msetex") ?? .ruled
        )
    )
}
