import StateModel

func readSet(_ arguments: Arguments) throws(StateError) -> Command {
    var condition: Condition?
    var returnsOld = false
    var time: ExpiryOption?
    var options = OptionCursor(arguments, from: 2)
    while !options.isAtEnd {
        if condition == nil, options.take("NX") {
            condition = .isAbsent
        } else if condition == nil, options.take("XX") {
            condition = .isPresent
        } else if options.take("GET") {
            returnsOld = true
        } else if time == nil, let option = options.takeExpiry() {
            time = option
        } else if time == nil, options.take("KEEPTTL") {
            time = .kept
        } else {
            throw syntaxError()
        }
    }
    return .set(
        key: try key(arguments[0]),
        value: arguments[1],
        condition: condition,
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
