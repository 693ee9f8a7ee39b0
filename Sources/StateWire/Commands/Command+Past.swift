package import StateModel

/// Verbs that look back, go back, or go on from what is known.
extension Command {
    /// Why the command cannot be part of a transaction; nil where it can.
    ///
    /// What is answered later, from the disk or once something happens, would keep all others waiting between MULTI and EXEC.
    package var reasonAgainstTransaction: StateError? {
        let what: String
        switch self {
        case .stateGet(_, .some), .stateList(_, _, _, _, .some), .stateHistory:
            what = "the history cannot be read"
        case .stateRevert: what = "nothing can be reverted"
        case .stateChanges: what = "changes cannot be asked for"
        case .stateReload: what = "the configuration cannot be read"
        default: return nil
        }
        return StateError(.err, "\(what) inside of MULTI; ask before it or after EXEC")
    }
}

func readStateGet(_ arguments: Arguments) throws(StateError) -> Command {
    let key = try key(arguments[0])
    guard arguments.count > 1 else { return .stateGet(key, at: nil) }
    guard arguments.count == 3, arguments.isWord(1, "AT") else {
        throw syntaxError("STATE.GET takes a key and AT revision")
    }
    return .stateGet(key, at: try revision(arguments[2]))
}

func readHistory(_ arguments: Arguments) throws(StateError) -> Command {
    let key = try key(arguments[0])
    var limit = Int.max
    var before: Int64?
    var options = OptionCursor(arguments, from: 1)
    while !options.isAtEnd {
        if let number = options.value(of: "LIMIT") {
            limit = try listLimit(number)
        } else if let number = options.value(of: "BEFORE") {
            before = try revision(number)
        } else {
            throw syntaxError("STATE.HISTORY takes a key, LIMIT n and BEFORE revision")
        }
    }
    return .stateHistory(key, limit: limit, before: before)
}

func readRevert(_ arguments: Arguments) throws(StateError) -> Command {
    guard arguments.isWord(1, "TO") else {
        throw syntaxError("STATE.REVERT takes a pattern and TO revision")
    }
    return .stateRevert(pattern: arguments[0], to: try revision(arguments[2]))
}

/// Options stand first; what follows the last of them is patterns.
func readChanges(_ arguments: Arguments) throws(StateError) -> Command {
    guard arguments.isWord(0, "SINCE") else {
        throw syntaxError("STATE.CHANGES takes SINCE revision first")
    }
    var options = Command.ChangesOptions(since: try revision(arguments[1]))
    var rest = OptionCursor(arguments, from: 2)
    while true {
        if rest.take("PREVIOUS") {
            options.includesPrevious = true
        } else if let epoch = rest.value(of: "EPOCH") {
            options.epoch = epoch
        } else if let number = rest.value(of: "COUNT") {
            options.count = Int(try count(number, from: 1, "COUNT"))
        } else if let number = rest.value(of: "BLOCK") {
            options.block = try milliseconds(number)
        } else {
            break
        }
    }
    guard !rest.isAtEnd else { throw syntaxError("STATE.CHANGES takes a pattern") }
    return .stateChanges(rest.rest, options)
}

private func milliseconds(_ bytes: Bytes) throws(StateError) -> Int64 {
    guard let number = bytes.decimal, (0...Int64(Int32.max)).contains(number) else {
        throw StateError(
            .err,
            "BLOCK \(StateError.quoted(bytes)) is not a number of milliseconds from 0 (for ever) to "
                + "\(Int32.max)"
        )
    }
    return number
}
