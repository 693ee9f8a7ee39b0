import StateModel

func readWatch(_ arguments: Arguments) throws(StateError) -> Command {
    let (count, options, resume) = try readWatchOptions(arguments)
    guard count > 0 else { throw syntaxError("STATE.WATCH needs a pattern") }
    guard resume == nil || !options.contains(.snapshot) else {
        throw syntaxError("STATE.WATCH takes only one of SNAPSHOT and FROM")
    }
    guard !options.isSuperset(of: [.latest, .previous]) else {
        throw syntaxError(
            "STATE.WATCH takes only one of LATEST and PREVIOUS: LATEST skips values in between"
        )
    }
    for index in 0..<count {
        // An option in the wrong place must not silently count as a key.
        for word: StaticString in ["FROM", "EPOCH", "LATEST"] where arguments.isWord(index, word) {
            let word = arguments[index].text
            throw syntaxError(
                "'\(word)' is misplaced: STATE.WATCH pattern… [SNAPSHOT | FROM r [EPOCH e]] "
                    + "[LATEST] [PREVIOUS] [BY]; to watch a key of that name write '\\\(word)'"
            )
        }
    }
    return .stateWatch(arguments.prefix(count), options, resume)
}

/// The options, which come last; all arguments before them are patterns.
private func readWatchOptions(
    _ arguments: Arguments
) throws(StateError) -> (patternCount: Int, Command.WatchOptions, Command.Resume?) {
    var options: Command.WatchOptions = []
    var resume: Command.Resume?
    var end = arguments.count
    while end > 0 {
        if let option = Command.WatchOptions(arguments, end - 1) {
            options.insert(option)
            end -= 1
        } else if end > 1, resume == nil, arguments.isWord(end - 2, "FROM") {
            resume = Command.Resume(revision: try revision(arguments[end - 1]))
            end -= 2
        } else if end > 3, resume == nil, arguments.isWord(end - 4, "FROM"),
            arguments.isWord(end - 2, "EPOCH")
        {
            let revision = try revision(arguments[end - 3])
            resume = Command.Resume(revision: revision, epoch: arguments[end - 1])
            end -= 4
        } else {
            break
        }
    }
    return (end, options, resume)
}
