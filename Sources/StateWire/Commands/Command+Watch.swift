import StateModel

func readWatch(_ arguments: Arguments) throws(StateError) -> Command {
    let (count, options, resume) = try readWatchOptions(arguments)
    guard count > 0 else { throw syntaxError("STATE.WATCH takes a pattern") }
    guard resume == nil || !options.contains(.snapshot) else {
        throw syntaxError("STATE.WATCH takes SNAPSHOT or FROM, not both")
    }
    guard !options.isSuperset(of: [.latest, .previous]) else {
        throw syntaxError(
            "STATE.WATCH takes LATEST or PREVIOUS, not both: what the latest value replaced may not have "
                + "been told"
        )
    }
    for index in 0..<count {
        // What was meant as an option is not taken for a key, silently.
        for word: StaticString in ["FROM", "EPOCH", "LATEST"] where arguments.isWord(index, word) {
            let word = arguments[index].text
            throw syntaxError(
                "'\(word)' of STATE.WATCH is no option here: options are SNAPSHOT or FROM r [EPOCH e], "
                    + "LATEST, PREVIOUS and BY, behind the patterns; the key is written '\\\(word)'"
            )
        }
    }
    return .stateWatch(arguments.prefix(count), options, resume)
}

/// The options, which stand last; whatever stands before them is a pattern.
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
