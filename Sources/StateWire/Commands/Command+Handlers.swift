import StateModel

/// The longest name of a handler, in bytes.
private let handlerNameByteCount = 128

/// Reads what stands behind STATE.HANDLER.
///
/// Options stand before the patterns; a pattern that would read as one is written with `\`.
func readHandler(_ arguments: Arguments) throws(StateError) -> Command {
    let name = try handlerName(arguments[1])
    if arguments.isWord(0, "DONE"), arguments.count == 3 {
        return .stateHandler(name: name, .done(try revision(arguments[2])))
    }
    if arguments.isWord(0, "FORGET"), arguments.count == 2 {
        return .stateHandler(name: name, .forget)
    }
    guard arguments.isWord(0, "ATTACH") else {
        throw syntaxError(
            "STATE.HANDLER takes ATTACH name [RESET] [FROM r|SNAPSHOT] pattern…, DONE name revision "
                + "or FORGET name"
        )
    }
    var start: Command.HandlerStart?
    var isReset = false
    var options = OptionCursor(arguments, from: 2)
    while true {
        if !isReset, options.take("RESET") {
            isReset = true
        } else if start == nil, options.take("SNAPSHOT") {
            start = .snapshot
        } else if start == nil, let number = options.value(of: "FROM") {
            start = .revision(try revision(number))
        } else {
            break
        }
    }
    guard !options.isAtEnd else { throw syntaxError("STATE.HANDLER ATTACH takes a pattern") }
    let step = Command.HandlerStep.attach(from: start ?? .now, isReset: isReset, options.rest)
    return .stateHandler(name: name, step)
}

/// The name of a handler: as a key, but for the length and a `/` at the end.
private func handlerName(_ bytes: Bytes) throws(StateError) -> Bytes {
    let shown = StateError.quoted(bytes)
    guard (1...handlerNameByteCount).contains(bytes.count) else {
        throw StateError(
            .err,
            "the name of a handler has 1 to \(handlerNameByteCount) bytes, \(shown) has "
                + "\(bytes.count)"
        )
    }
    switch Key.fault(of: bytes) {
    case .isNotUTF8, .hasControlCharacter:
        throw StateError(
            .err,
            "the name of a handler is UTF-8 without control characters: \(shown) is not"
        )
    case .isEmpty, .isTooLong, .endsInSlash, nil: return bytes
    }
}
