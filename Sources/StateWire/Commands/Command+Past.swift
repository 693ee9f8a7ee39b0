package import StateModel

/// Verbs that read the history, revert to it, or continue from a revision.
extension Command {
    /// Why the command cannot be part of a transaction; nil if it can.
    ///
    /// A command that is answered later, from the disk or after an event, would make all clients
    /// wait during EXEC.
    package var reasonAgainstTransaction: StateError? {
        let what: String
        switch self {
        case .stateGet(_, .some), .stateList(_, _, _, _, .some), .stateHistory:
            what = "a read of the history"
        case .stateRevert: what = "STATE.REVERT"
        case .stateChanges: what = "STATE.CHANGES"
        case .stateReload: what = "STATE.RELOAD"
        case .stateBackup: what = "STATE.BACKUP"
        default: return nil
        }
        return StateError(
            .err,
            "\(what) is not allowed inside MULTI; use it before MULTI or after EXEC"
        )
    }
}

func readStateGet(_ arguments: Arguments) throws(StateError) -> Command {
    let key = try key(arguments[0])
    guard arguments.count > 1 else { return .stateGet(key, at: nil) }
    guard arguments.count == 3, arguments.isWord(1, "AT") else {
        throw syntaxError("expected STATE.GET key [AT revision]")
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
            throw syntaxError("expected STATE.HISTORY key [LIMIT n] [BEFORE revision]")
        }
    }
    return .stateHistory(key, limit: limit, before: before)
}

func readRevert(_ arguments: Arguments) throws(StateError) -> Command {
    let isDryRun = arguments.count == 4 && arguments.isWord(3, "DRYRUN")
    guard arguments.isWord(1, "TO"), arguments.count == 3 || isDryRun else {
        throw syntaxError("expected STATE.REVERT pattern TO revision [DRYRUN]")
    }
    let goal = try revision(arguments[2])
    return .stateRevert(pattern: arguments[0], to: goal, isDryRun: isDryRun)
}

/// Options come first; the arguments after the last option are patterns.
func readChanges(_ arguments: Arguments) throws(StateError) -> Command {
    guard arguments.isWord(0, "SINCE") else {
        throw syntaxError("STATE.CHANGES begins with SINCE revision")
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
    guard !rest.isAtEnd else { throw syntaxError("STATE.CHANGES needs a pattern") }
    return .stateChanges(rest.rest, options)
}

private func milliseconds(_ bytes: Bytes) throws(StateError) -> Int64 {
    guard let number = bytes.decimal, (0...Int64(Int32.max)).contains(number) else {
        throw StateError(
            .err,
            "BLOCK \(StateError.quoted(bytes)) is not a number of milliseconds from 0 (forever) to "
                + "\(Int32.max)"
        )
    }
    return number
}

/// Parses the arguments of STATE.BACKUP.
func readBackup(_ arguments: Arguments) throws(StateError) -> Command.BackupStep {
    if arguments.count == 1, arguments.isWord(0, "NEXT") { return .next }
    if arguments.count == 1, arguments.isWord(0, "END") { return .end }
    var options = OptionCursor(arguments, from: 1)
    if arguments.isWord(0, "BEGIN") {
        if options.isAtEnd { return .begin(includesHistory: true, since: nil) }
        if options.take("NOHISTORY"), options.isAtEnd {
            return .begin(includesHistory: false, since: nil)
        }
        if let number = options.value(of: "SINCE"), let epoch = options.value(of: "EPOCH"),
            options.isAtEnd
        {
            return .begin(includesHistory: true, since: (try revision(number), epoch))
        }
    }
    throw syntaxError(
        "STATE.BACKUP takes BEGIN [NOHISTORY | SINCE revision EPOCH epoch], NEXT or END"
    )
}
