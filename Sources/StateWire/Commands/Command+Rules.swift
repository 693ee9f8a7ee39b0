import StateModel

/// A pattern, unless an option stands first; then options.
func readCheck(_ arguments: Arguments) throws(StateError) -> Command {
    var pattern: Bytes?
    var after: Bytes?
    var limit = Int.max
    var index = 0
    while index < arguments.count {
        let hasValue = index + 1 < arguments.count
        if arguments.isWord(index, "AFTER"), hasValue {
            after = arguments[index + 1]
            index += 2
        } else if arguments.isWord(index, "LIMIT"), hasValue {
            limit = try listLimit(arguments[index + 1])
            index += 2
        } else if index == 0 {
            pattern = arguments[0]
            index += 1
        } else {
            throw syntaxError("STATE.CHECK takes a pattern, AFTER key and LIMIT n")
        }
    }
    return .stateCheck(pattern: pattern, after: after, limit: limit)
}
