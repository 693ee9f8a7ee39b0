import StateModel

func readSet(_ arguments: Arguments) throws(StateError) -> Command {
    var needsPresence: Bool?
    var returnsOld = false
    var time: ExpiryOption?
    var comparison: Command.Comparison?
    var options = OptionCursor(arguments, from: 2)
    while !options.isAtEnd {
        // As in Redis, an option may be repeated.
        if needsPresence != true, comparison == nil, options.take("NX") {
            needsPresence = false
        } else if needsPresence != false, comparison == nil, options.take("XX") {
            needsPresence = true
        } else if options.take("GET") {
            returnsOld = true
        } else if let option = options.takeExpiry(orWord: "KEEPTTL", as: .kept),
            time?.isLike(option) ?? true
        {
            time = option
        } else if needsPresence == nil, comparison == nil,
            let found = try options.takeComparison()
        {
            comparison = found
        } else {
            throw syntaxError()
        }
    }
    if let comparison {
        let expiry = try time?.expiry("set") ?? .ruled
        let (name, value) = (try key(arguments[0]), arguments[1])
        return .value(
            .set(key: name, value: value, comparison, expiry, returnsOld: returnsOld)
        )
    }
    return .set(
        key: try key(arguments[0]),
        value: arguments[1],
        condition: needsPresence.map { $0 ? .isPresent : .isAbsent },
        try time?.expiry("set") ?? .ruled,
        returnsOld: returnsOld
    )
}

func readScan(_ arguments: Arguments) throws(StateError) -> Command {
    guard let cursor = UInt64(arguments[0].text) else { throw StateError(.err, "invalid cursor") }
    var scan = Command.Scan(cursor: cursor)
    var options = OptionCursor(arguments, from: 1)
    while !options.isAtEnd {
        if let glob = options.value(of: "MATCH") {
            scan.match = glob
        } else if let number = options.value(of: "COUNT") {
            let limit = try integer(number)
            guard limit > 0 else { throw syntaxError() }
            scan.count = Int(min(limit, 1 << 20))
        } else if let type = options.value(of: "TYPE") {
            scan.includesStrings = type.text.lowercased() == "string"
        } else {
            throw syntaxError()
        }
    }
    return .scan(scan)
}
