import StateModel

func readStateSet(_ arguments: Arguments) throws(StateError) -> Command {
    var conditions = Command.Conditions()
    var further = Command.SetOptions()
    var isTimed = false
    var options = OptionCursor(arguments, from: 2)
    while !options.isAtEnd {
        if conditions.presence == nil, options.take("NX") {
            conditions.presence = .isAbsent
        } else if conditions.presence == nil, options.take("XX") {
            conditions.presence = .isPresent
        } else if let number = options.value(of: "IFREV") {
            conditions.revision = .revision(try revision(number))
        } else if let value = options.value(of: "IFVAL") {
            conditions.value = .value(value)
        } else if further.durability == nil, let word = options.value(of: "DURABILITY") {
            further.durability = try level(word)
        } else if !isTimed, let expiry = try options.takeExpires() {
            (further.expiry, isTimed) = (expiry, true)
        } else {
            throw syntaxError("in option \(StateError.quoted(options.next)) of STATE.SET")
        }
    }
    return .stateSet(
        key: try key(arguments[0]),
        value: arguments[1],
        conditions: conditions,
        further
    )
}

private func level(_ word: Bytes) throws(StateError) -> Durability {
    if let level = Durability(word.text.lowercased()) { return level }
    throw StateError(
        .err,
        "DURABILITY must be memory, interval or synced, not \(StateError.quoted(word))"
    )
}

func readApply(_ arguments: Arguments) throws(StateError) -> Command {
    guard let count = arguments[0].decimal, count >= 0, count <= 1_000_000 else {
        throw StateError(.err, "STATE.APPLY begins with the number of steps, from 0 to 1000000")
    }
    var steps: [Command.ApplyStep] = []
    var rest = OptionCursor(arguments, from: 1)
    var isDryRun = false
    while !rest.isAtEnd {
        if steps.count == Int(count), !isDryRun, rest.take("DRYRUN") {
            isDryRun = true
        } else if let (name, value) = rest.values(of: "SET") {
            steps.append(try readSetStep(name, value, &rest))
        } else if let name = rest.value(of: "DELETE") {
            let condition = try rest.value(of: "IFREV").map(revision)
            steps.append(.delete(try key(name), revision: condition))
        } else if let (name, number) = rest.values(of: "CHECK") {
            let revision = try revision(number)
            steps.append(.check(try key(name), revision: revision))
        } else {
            throw syntaxError("in step \(steps.count + 1) of STATE.APPLY")
        }
    }
    guard steps.count == Int(count) else {
        throw StateError(.err, "STATE.APPLY says \(count) steps but has \(steps.count)")
    }
    if isDryRun { steps.append(.undo) }
    return .stateApply(steps)
}

/// The options of a step that sets `name`, in any order.
private func readSetStep(
    _ name: Bytes,
    _ value: Bytes,
    _ rest: inout OptionCursor
) throws(StateError) -> Command.ApplyStep {
    var condition: Int64?
    var expiry: Expiry?
    while !rest.isAtEnd {
        if condition == nil, let number = rest.value(of: "IFREV") {
            condition = try revision(number)
        } else if expiry == nil, let time = try rest.takeExpires() {
            expiry = time
        } else {
            break
        }
    }
    return .set(try key(name), value, revision: condition, expiry ?? .ruled)
}

func readStateDelete(_ arguments: Arguments) throws(StateError) -> Command {
    let isDryRun = arguments.isWord(arguments.count - 1, "DRYRUN")
    let patterns = isDryRun ? arguments.prefix(arguments.count - 1) : arguments
    guard patterns.count > 0 else { throw syntaxError("STATE.DELETE needs a pattern") }
    return .stateDelete(patterns, isDryRun: isDryRun)
}

func readList(_ arguments: Arguments) throws(StateError) -> Command {
    var after: Bytes?
    var limit = Int.max
    var form: Command.ListForm?
    var listsChildren = false
    var moment: Int64?
    var options = OptionCursor(arguments, from: 1)
    while !options.isAtEnd {
        if let key = options.value(of: "AFTER") {
            after = key
        } else if let number = options.value(of: "LIMIT") {
            limit = try listLimit(number)
        } else if let number = options.value(of: "AT") {
            moment = try revision(number)
        } else if form == nil, !listsChildren, let named = Command.ListForm(&options) {
            form = named
        } else if form == nil, !listsChildren, options.take("CHILDREN") {
            listsChildren = true
        } else {
            throw syntaxError("in option \(StateError.quoted(options.next)) of STATE.LIST")
        }
    }
    if listsChildren {
        guard moment == nil else {
            throw syntaxError("CHILDREN lists the present; list the keys for AT, with KEYS")
        }
        return .stateChildren(pattern: arguments[0], after: after, limit: limit)
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
    var revision: Int64?
    var shrinks = false
    var options = OptionCursor(arguments)
    while !options.isAtEnd {
        if !shrinks, options.take("SHRINK") {
            shrinks = true
        } else if revision == nil, let text = options.value(of: "TO") {
            let number = try integer(text)
            guard number >= 0 else {
                throw StateError(.err, "TO '\(number)' is not a whole number of at least 0")
            }
            revision = number
        } else {
            throw syntaxError("expected STATE.COMPACT [TO revision] [SHRINK]")
        }
    }
    return .stateCompact(revision: revision, shrinks: shrinks)
}

extension Command.ListForm {
    /// Takes the option that names a form.
    fileprivate init?(_ options: inout OptionCursor) {
        if options.take("LONG") {
            self = .long
        } else if options.take("KEYS") {
            self = .keys
        } else if options.take("COUNT") {
            self = .count
        } else {
            return nil
        }
    }
}
