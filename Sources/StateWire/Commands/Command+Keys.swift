import StateModel

func readSet(_ arguments: Arguments) throws(StateError) -> Command {
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

func readScan(_ arguments: Arguments) throws(StateError) -> Command {
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
