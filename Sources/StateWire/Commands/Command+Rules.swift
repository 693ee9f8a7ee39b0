import StateModel

func readReload(_ arguments: Arguments) throws(StateError) -> Command {
    guard arguments.count > 0 else { return .stateReload(isDryRun: false) }
    guard arguments.count == 1, arguments.isWord(0, "DRYRUN") else {
        throw syntaxError("expected STATE.RELOAD [DRYRUN]")
    }
    return .stateReload(isDryRun: true)
}

/// An optional pattern, then options.
func readCheck(_ arguments: Arguments) throws(StateError) -> Command {
    var pattern: Bytes?
    var after: Bytes?
    var limit = Int.max
    var options = OptionCursor(arguments)
    while !options.isAtEnd {
        if let key = options.value(of: "AFTER") {
            after = key
        } else if let number = options.value(of: "LIMIT") {
            limit = try listLimit(number)
        } else if options.index == 0 {
            pattern = options.takeNext()
        } else {
            throw syntaxError("expected STATE.CHECK [pattern] [AFTER key] [LIMIT n]")
        }
    }
    return .stateCheck(pattern: pattern, after: after, limit: limit)
}
