package import StateModel

extension Command {
    /// What a command does with the deadline of a key.
    package enum ExpiryStep {
        /// GETEX: returns the value and changes the deadline; nil leaves it as it is.
        case get(Expiry?)
        /// EXPIRE and its like: changes it.
        case change(Expiry, ExpiryConditions)
        /// TTL and its like: returns it.
        case report(ExpiryForm)
    }

    /// When EXPIRE changes a deadline; empty for always.
    package struct ExpiryConditions: OptionSet, Sendable {
        package let rawValue: Int
        /// The key has none.
        package static let isAbsent = ExpiryConditions(rawValue: 1)
        /// The key has one.
        package static let isPresent = ExpiryConditions(rawValue: 2)
        /// It is earlier than the new one; no deadline is the latest of all.
        package static let isEarlier = ExpiryConditions(rawValue: 4)
        /// It is later than the new one.
        package static let isLater = ExpiryConditions(rawValue: 8)

        package init(rawValue: Int) { self.rawValue = rawValue }
    }

    /// How a deadline is written.
    package struct ExpiryForm {
        /// As the time that is left, not as a time since 1970.
        package let isTimeLeft: Bool
        package let unit: TimeUnit
    }

    /// A unit of time, in milliseconds.
    package enum TimeUnit: Int64 {
        case milliseconds = 1
        case seconds = 1_000
    }
}

/// A time of a command that was not read yet: Redis looks at all options first.
enum ExpiryOption {
    case kept
    case never
    case time(Bytes, Command.TimeUnit, isRelative: Bool)

    /// Later than this, milliseconds from now may have no wall time in 64 bits.
    private static let latest = Int64.max - 1 << 42

    /// Whether both are written with the same word: Redis takes the last of them.
    func isLike(_ other: ExpiryOption) -> Bool {
        switch (self, other) {
        case (.kept, .kept), (.never, .never): true
        case (.time(_, let unit, let isRelative), .time(_, let otherUnit, let isOtherRelative)):
            unit == otherUnit && isRelative == isOtherRelative
        default: false
        }
    }

    /// Reads the time.
    ///
    /// - Parameters:
    ///   - verb: The verb, for the error.
    ///   - allowsPast: Whether it may be 0 or negative.
    /// - Returns: When the value expires.
    /// - Throws: ``StateError/Code/err`` in the words of Redis.
    func expiry(_ verb: String, allowsPast: Bool = false) throws(StateError) -> Expiry {
        switch self {
        case .kept: return .kept
        case .never: return .never
        case .time(let bytes, let unit, let isRelative):
            let number = try integer(bytes)
            let (time, overflows) = number.multipliedReportingOverflow(by: unit.rawValue)
            guard !overflows, allowsPast || number > 0, !isRelative || time <= ExpiryOption.latest
            else {
                throw StateError(.err, "invalid expire time in '\(verb)' command")
            }
            return isRelative ? .after(time) : .at(time)
        }
    }
}

extension OptionCursor {
    /// Takes EX, PX, EXAT or PXAT with its time, or the word that stands for another option.
    mutating func takeExpiry(orWord word: StaticString, as other: ExpiryOption) -> ExpiryOption? {
        if take(word) { return other }
        if let time = value(of: "EX") { return .time(time, .seconds, isRelative: true) }
        if let time = value(of: "PX") { return .time(time, .milliseconds, isRelative: true) }
        if let time = value(of: "EXAT") { return .time(time, .seconds, isRelative: false) }
        if let time = value(of: "PXAT") { return .time(time, .milliseconds, isRelative: false) }
        return nil
    }

    /// Takes EXPIRES with its time, or LIFETIME with whose end it is.
    ///
    /// - Throws: ``StateError/Code/err`` for what is no time above 0, and no lifetime.
    mutating func takeExpires() throws(StateError) -> Expiry? {
        if let word = value(of: "LIFETIME") { return .with(try lifetime(word)) }
        guard let word = value(of: "EXPIRES") else { return nil }
        let text = word.text
        if text.lowercased() == "never" { return .never }
        if text.lowercased() == "keep" { return .kept }
        // A number alone is in milliseconds.
        let time = try? Quantity.duration(text.allSatisfy(\.isNumber) ? text + "ms" : text)
        guard let time, time > .zero else {
            throw StateError(
                .err,
                "EXPIRES must be a time above 0 such as 30s, 1h30m or 500 (milliseconds), or never "
                    + "or keep, not \(StateError.quoted(word))"
            )
        }
        return .after(Int64(time / .milliseconds(1)))
    }
}

private func lifetime(_ word: Bytes) throws(StateError) -> Lifetime {
    if let lifetime = Lifetime(rawValue: word.text.lowercased()) { return lifetime }
    throw StateError(
        .err,
        "LIFETIME must be connection or process, not \(StateError.quoted(word))"
    )
}

/// Parses a command about the deadline of a key.
func readExpiryCommand(_ verb: Verb, _ rest: Arguments) throws(StateError) -> Command {
    switch verb.name {
    case .setex: return try readTimedSet(verb, rest, .seconds)
    case .psetex: return try readTimedSet(verb, rest, .milliseconds)
    case .getex: return try readTimedGet(rest)
    case .expire: return try readExpire(verb, rest, .seconds, isRelative: true)
    case .pexpire: return try readExpire(verb, rest, .milliseconds, isRelative: true)
    case .expireat: return try readExpire(verb, rest, .seconds, isRelative: false)
    case .pexpireat: return try readExpire(verb, rest, .milliseconds, isRelative: false)
    case .ttl: return try readReport(rest, .seconds, isTimeLeft: true)
    case .pttl: return try readReport(rest, .milliseconds, isTimeLeft: true)
    case .expiretime: return try readReport(rest, .seconds, isTimeLeft: false)
    case .pexpiretime: return try readReport(rest, .milliseconds, isTimeLeft: false)
    case .persist: return .expiry(try key(rest[0]), .change(.never, .isPresent))
    default: preconditionFailure("\(verb.name) is not about deadlines")
    }
}

private func readTimedSet(
    _ verb: Verb,
    _ arguments: Arguments,
    _ unit: Command.TimeUnit
) throws(StateError) -> Command {
    let time = ExpiryOption.time(arguments[1], unit, isRelative: true)
    return .set(
        key: try key(arguments[0]),
        value: arguments[2],
        condition: nil,
        try time.expiry(verb.name.rawValue),
        returnsOld: false
    )
}

private func readTimedGet(_ arguments: Arguments) throws(StateError) -> Command {
    var time: ExpiryOption?
    var options = OptionCursor(arguments, from: 1)
    while !options.isAtEnd {
        guard let option = options.takeExpiry(orWord: "PERSIST", as: .never),
            time?.isLike(option) ?? true
        else { throw syntaxError() }
        time = option
    }
    return .expiry(try key(arguments[0]), .get(try time?.expiry("getex")))
}

private func readExpire(
    _ verb: Verb,
    _ arguments: Arguments,
    _ unit: Command.TimeUnit,
    isRelative: Bool
) throws(StateError) -> Command {
    let conditions = try readExpiryConditions(arguments.dropFirst(2))
    let time = ExpiryOption.time(arguments[1], unit, isRelative: isRelative)
    let expiry = try time.expiry(verb.name.rawValue, allowsPast: true)
    return .expiry(try key(arguments[0]), .change(expiry, conditions))
}

private func readExpiryConditions(
    _ arguments: Arguments
) throws(StateError) -> Command.ExpiryConditions {
    var conditions: Command.ExpiryConditions = []
    var options = OptionCursor(arguments)
    while !options.isAtEnd {
        if options.take("NX") {
            conditions.insert(.isAbsent)
        } else if options.take("XX") {
            conditions.insert(.isPresent)
        } else if options.take("GT") {
            conditions.insert(.isEarlier)
        } else if options.take("LT") {
            conditions.insert(.isLater)
        } else {
            throw StateError(.err, "Unsupported option \(StateError.printable(options.next.text))")
        }
    }
    if conditions.contains(.isAbsent), conditions != .isAbsent {
        throw StateError(
            .err,
            "NX and XX, GT or LT options at the same time are not compatible"
        )
    }
    if conditions.isSuperset(of: [.isEarlier, .isLater]) {
        throw StateError(.err, "GT and LT options at the same time are not compatible")
    }
    return conditions
}

private func readReport(
    _ arguments: Arguments,
    _ unit: Command.TimeUnit,
    isTimeLeft: Bool
) throws(StateError) -> Command {
    let form = Command.ExpiryForm(isTimeLeft: isTimeLeft, unit: unit)
    return .expiry(try key(arguments[0]), .report(form))
}
