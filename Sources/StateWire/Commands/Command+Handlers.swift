import StateModel

/// The longest name of a handler, in bytes.
private let handlerNameByteCount = 128

/// Parses the arguments of STATE.HANDLER.
///
/// Options come before the patterns; `\` before a pattern that looks like an option makes it a
/// pattern.
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
            "STATE.HANDLER takes ATTACH name [RESET] [FROM r|SNAPSHOT] pattern…, DONE name "
                + "revision or FORGET name"
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
    guard !options.isAtEnd else { throw syntaxError("STATE.HANDLER ATTACH needs a pattern") }
    let step = Command.HandlerStep.attach(from: start ?? .now, isReset: isReset, options.rest)
    return .stateHandler(name: name, step)
}

/// The name of a handler.
///
/// It follows the rules of a key, except that it is shorter and may end in `/`.
private func handlerName(_ bytes: Bytes) throws(StateError) -> Bytes {
    let shown = StateError.quoted(bytes)
    guard (1...handlerNameByteCount).contains(bytes.count) else {
        throw StateError(
            .err,
            "handler name \(shown) has \(bytes.count) bytes; it must have 1 to "
                + "\(handlerNameByteCount)"
        )
    }
    switch Key.fault(of: bytes) {
    case .isNotUTF8, .hasControlCharacter:
        throw StateError(
            .err,
            "handler name \(shown) must be UTF-8 without control characters"
        )
    case .isEmpty, .isTooLong, .endsInSlash, nil: return bytes
    }
}
