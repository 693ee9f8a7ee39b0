import StateModel

func readStateSet(_ arguments: Arguments) throws(StateError) -> Command {
    var conditions = Command.Conditions()
    var durability: Durability?
    var index = 2
    while index < arguments.count {
        if arguments.isWord(index, "NX"), conditions.presence == nil {
            conditions.presence = .isAbsent
        } else if arguments.isWord(index, "XX"), conditions.presence == nil {
            conditions.presence = .isPresent
        } else if arguments.isWord(index, "IFREV"), index + 1 < arguments.count {
            index += 1
            conditions.revision = .revision(try revision(arguments[index]))
        } else if arguments.isWord(index, "IFVAL"), index + 1 < arguments.count {
            index += 1
            conditions.value = .value(arguments[index])
        } else if arguments.isWord(index, "DURABILITY"), durability == nil,
            index + 1 < arguments.count
        {
            index += 1
            guard let level = Durability(arguments[index].text.lowercased()) else {
                throw StateError(
                    .err,
                    "DURABILITY is memory, written or synced, not "
                        + StateError.quoted(arguments[index])
                )
            }
            durability = level
        } else {
            throw syntaxError("in option \(StateError.quoted(arguments[index])) of STATE.SET")
        }
        index += 1
    }
    return .stateSet(
        key: try key(arguments[0]),
        value: arguments[1],
        conditions: conditions,
        durability: durability
    )
}

func readApply(_ arguments: Arguments) throws(StateError) -> Command {
    guard let count = arguments[0].decimal, count >= 0, count <= 1_000_000 else {
        throw StateError(.err, "STATE.APPLY takes a number of steps from 0 to 1000000 first")
    }
    var steps: [Command.ApplyStep] = []
    var index = 1
    func has(_ more: Int) -> Bool { index + more < arguments.count }
    func condition(at place: Int) throws(StateError) -> Int64? {
        guard place + 1 < arguments.count, arguments.isWord(place, "IFREV") else { return nil }
        return try revision(arguments[place + 1])
    }
    while index < arguments.count {
        if arguments.isWord(index, "SET"), has(2) {
            let condition = try condition(at: index + 3)
            steps.append(
                .set(try key(arguments[index + 1]), arguments[index + 2], revision: condition)
            )
            index += condition == nil ? 3 : 5
        } else if arguments.isWord(index, "DELETE"), has(1) {
            let condition = try condition(at: index + 2)
            steps.append(.delete(try key(arguments[index + 1]), revision: condition))
            index += condition == nil ? 2 : 4
        } else if arguments.isWord(index, "CHECK"), has(2) {
            let revision = try revision(arguments[index + 2])
            steps.append(.check(try key(arguments[index + 1]), revision: revision))
            index += 3
        } else {
            throw syntaxError("in step \(steps.count + 1) of STATE.APPLY")
        }
    }
    guard steps.count == Int(count) else {
        throw StateError(.err, "STATE.APPLY announces \(count) steps and has \(steps.count)")
    }
    return .stateApply(steps)
}

func readStateDelete(_ arguments: Arguments) throws(StateError) -> Command {
    let isDryRun = arguments.isWord(arguments.count - 1, "DRYRUN")
    let patterns = isDryRun ? arguments.prefix(arguments.count - 1) : arguments
    guard patterns.count > 0 else { throw syntaxError("STATE.DELETE takes a pattern") }
    return .stateDelete(patterns, isDryRun: isDryRun)
}

func readList(_ arguments: Arguments) throws(StateError) -> Command {
    var after: Bytes?
    var limit = Int.max
    var form: Command.ListForm?
    var moment: Int64?
    var index = 1
    while index < arguments.count {
        if arguments.isWord(index, "AFTER"), index + 1 < arguments.count {
            index += 1
            after = arguments[index]
        } else if arguments.isWord(index, "LIMIT"), index + 1 < arguments.count {
            index += 1
            limit = try listLimit(arguments[index])
        } else if arguments.isWord(index, "AT"), index + 1 < arguments.count {
            index += 1
            moment = try revision(arguments[index])
        } else if arguments.isWord(index, "LONG"), form == nil {
            form = .long
        } else if arguments.isWord(index, "KEYS"), form == nil {
            form = .keys
        } else if arguments.isWord(index, "COUNT"), form == nil {
            form = .count
        } else {
            throw syntaxError("in option \(StateError.quoted(arguments[index])) of STATE.LIST")
        }
        index += 1
    }
    return .stateList(
        pattern: arguments[0],
        after: after,
        limit: limit,
        form: form ?? .entries,
        at: moment
    )
}

func readCompact(_ arguments: Arguments) throws(StateError) -> Command {
    var rest = arguments
    var revision: Int64?
    var shrinks = false
    while rest.count > 0 {
        if rest.isWord(0, "SHRINK"), !shrinks {
            shrinks = true
            rest = rest.dropFirst(1)
        } else if rest.isWord(0, "TO"), rest.count > 1, revision == nil {
            let number = try integer(rest[1])
            guard number >= 0 else {
                throw StateError(.err, "TO takes a revision of at least 0, not \(number)")
            }
            revision = number
            rest = rest.dropFirst(2)
        } else {
            throw syntaxError("STATE.COMPACT takes TO revision and SHRINK")
        }
    }
    return .stateCompact(revision: revision, shrinks: shrinks)
}
