import Glibc
import StateClient
import StateModel
import StateWire

/// The parsed command line.
///
/// A word that begins with a dash is an option, and may come before or after the verb. Its value is
/// the next argument, or follows an `=`. `-` alone and what begins as a number does, such as `-5`
/// and `-10m`, are operands. A word that is no option is refused and never taken as an operand:
/// `delete -n d/` must not delete. After `--` come operands only, or for a verb that runs one the
/// command.
///
/// It is a class because the runtime would make the types of a struct's arrays, to release them, at
/// each start: a third of what a `get` computes.
final class Invocation {
    enum Task {
        case perform(Verb)
        case help(Verb?)
        case helpOnAllVerbs
        case version
    }

    private(set) var task = Task.help(nil)
    private(set) var operands: [[UInt8]] = []
    /// The command to run, of a verb that takes one; nil if there is no `--`.
    private(set) var command: [[UInt8]]?
    /// The options in their order, of which the last of a name counts.
    ///
    /// An option without a value has an empty one. This is not a dictionary: the runtime would make
    /// its type at each start, which takes longer than what else a `get` computes.
    private var options: [(name: String, value: [UInt8])] = []
    /// How long the daemon may take to answer one command; nil for no limit.
    private(set) var replyTimeout: Duration? = Client.standardTimeout
    /// The socket of the first connection, and of all others: elsewhere is another store.
    private var connected: SocketLocation.Choice?

    init(arguments: [[UInt8]]) throws(Failure) {
        var verb: Verb?
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--".bytes {
                try end(with: rest, verb)
                break
            } else if Self.isOption(argument) {
                try read(option: argument, &rest, verb)
            } else if verb == nil, argument == "help".bytes, !has("--help") {
                options.append(("--help", []))
            } else if verb == nil, argument == "verbs".bytes, has("--help") {
                task = .helpOnAllVerbs
                return
            } else if verb == nil {
                verb = try named(String(decoding: argument, as: UTF8.self))
            } else {
                operands.append(argument)
            }
        }
        try readReplyTimeout()
        if has("--help") {
            task = .help(verb)
        } else if has("--version") {
            task = .version
        } else if let verb {
            task = .perform(verb)
            try checkOperands(verb)
            try checkPrefixes(verb)
        } else {
            throw .usage("no verb given; 'statectl --help' lists the verbs")
        }
    }

    /// Whether the option was given.
    func has(_ option: String) -> Bool { value(option) != nil }

    /// Whether what is printed is JSON.
    var isJSON: Bool { has("--json") }

    /// The key that is the first operand.
    func key() throws(Failure) -> Key { try attempt(try Key(bytes: operands[0])) }

    /// The pattern of a verb that takes one, or everything.
    func pattern() throws(Failure) -> Pattern {
        try operands.first.map(Self.pattern) ?? .everything
    }

    /// Reads a pattern.
    static func pattern(_ text: [UInt8]) throws(Failure) -> Pattern {
        try attempt(
            try text.withUnsafeBufferPointer { (bytes) throws(StateError) in
                try Pattern(Bytes(bytes))
            }
        )
    }

    /// Reads a pattern in which no character has a meaning but a final `/`.
    static func literal(_ text: [UInt8]) throws(StateError) -> Pattern {
        try Pattern(literal: text)
    }

    /// The value of the option; nil if it was not given.
    func value(_ option: String) -> [UInt8]? {
        options.last { $0.name.utf8.elementsEqual(option.utf8) }?.value
    }

    /// The value of the option as text.
    func text(_ option: String) -> String? {
        value(option).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The value of the option as a number of at least `minimum`.
    func number(_ option: String, atLeast minimum: Int64) throws(Failure) -> Int64? {
        guard let text = text(option) else { return nil }
        guard let number = Int64(text), number >= minimum else {
            throw .usage("\(option) takes a number of at least \(minimum), not '\(text)'")
        }
        return number
    }

    /// The value of the option as a duration with its unit, such as `500ms` or `1h30m`, or 0.
    func duration(_ option: String) throws(Failure) -> Duration? {
        try text(option).map { text throws(Failure) in try Self.duration(text, of: option) }
    }

    private static func duration(_ text: String, of name: String) throws(Failure) -> Duration {
        if text == "0" { return .zero }
        guard let time = try? Quantity.duration(text) else {
            throw .usage(
                "\(name) takes a time with its unit, such as 500ms, 10s or 2m, not '\(text)'"
            )
        }
        return time
    }

    /// The option, else the environment, else the library's default.
    private func readReplyTimeout() throws(Failure) {
        let variable = "STATED_REPLY_TIMEOUT"
        var time = try duration("--reply-timeout")
        if time == nil, let text = environmentVariable(variable) {
            time = try Self.duration(text, of: "$\(variable)")
        }
        if let time { replyTimeout = time == .zero ? nil : time }
    }

    /// A client that is connected to the daemon that the options name.
    func connect() throws(Failure) -> Client {
        try attempt(try newClient())
    }

    /// The same, with the error as it is.
    ///
    /// If `deadline` is earlier than the reply timeout, it applies to each command.
    func newClient(until deadline: Deadline? = nil) throws(StateError) -> Client {
        var timeout = replyTimeout
        if let deadline {
            let left = Duration.milliseconds(max(1, Int64(deadline.millisecondsLeft)))
            timeout = min(left, timeout ?? left)
        }
        let client = try Client(choice(), timeout: timeout)
        connected = client.socket
        return client
    }

    private func choice() throws(StateError) -> SocketLocation.Choice {
        if let connected { return connected }
        return try socketChoice(of: text("--socket"))
    }

    /// The socket of the daemon that `socket`, `daemon` or the options name, or else the default.
    func socketChoice(
        of socket: String?,
        _ daemon: SocketLocation.Daemon? = nil
    ) throws(StateError) -> SocketLocation.Choice {
        let isSystem = has("--system") || daemon == .system
        let isUser = has("--user") || daemon == .user
        guard [isSystem, isUser, socket != nil].count(where: { $0 }) <= 1 else {
            throw StateError(.err, "give only one of --socket, --system and --user")
        }
        let location = SocketLocation.process
        guard isSystem || isUser else { return try location.clientChoice(option: socket) }
        return try location.clientChoice(of: isSystem ? .system : .user)
    }

    /// Whether the word begins with a dash, but not as a number does.
    private static func isOption(_ word: [UInt8]) -> Bool {
        guard word.count > 1, word[0] == UInt8(ascii: "-") else { return false }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let isFraction = word[1] == UInt8(ascii: ".") && word.count > 2
        return !digits.contains(word[isFraction ? 2 : 1])
    }

    /// The verb of that name; `keys` is `list --keys`.
    private func named(_ word: String) throws(Failure) -> Verb {
        if word == "keys" { options.append(("--keys", [])) }
        return try Verb.named(word)
    }

    private func end(with rest: ArraySlice<[UInt8]>, _ verb: Verb?) throws(Failure) {
        guard verb?.takesCommand ?? false else {
            operands += rest
            return
        }
        guard !rest.isEmpty else { throw .usage("no command follows '--'") }
        command = Array(rest)
    }

    private func read(
        option argument: [UInt8],
        _ rest: inout ArraySlice<[UInt8]>,
        _ verb: Verb?
    ) throws(Failure) {
        let equals = argument.firstIndex(of: UInt8(ascii: "="))
        let name = String(decoding: argument[..<(equals ?? argument.endIndex)], as: UTF8.self)
        let known = Option.common + (verb?.options() ?? [])
        guard let option = Option.named(name, among: known, isBeforeVerb: verb == nil) else {
            throw .usage(Self.unknown(name, verb, known))
        }
        let attached = equals.map { Array(argument[($0 + 1)...]) }
        guard let placeholder = option.placeholder else {
            guard attached == nil else { throw .usage("\(name) takes no value") }
            options.append((option.name, []))
            return
        }
        guard let value = attached ?? rest.popFirst() else {
            throw .usage("\(name) needs a value: \(name) \(placeholder)")
        }
        if option.name == "-o" {
            guard value == "json".bytes else {
                throw .usage("-o takes json, not '\(String(decoding: value, as: UTF8.self))'")
            }
            options.append(("--json", []))
        } else {
            options.append((option.name, value))
        }
    }

    private static func unknown(_ name: String, _ verb: Verb?, _ known: [Option]) -> String {
        // A single letter is near to everything.
        let nearest =
            name.utf8.count > 2 ? Spelling.nearest(to: name, among: known.map(\.name)) : nil
        let question = Spelling.question(nearest)
        guard let verb else {
            return "unknown option '\(name)' before the verb\(question)"
        }
        let advice = verb.operandCount.upperBound > 0 ? " (if it is a value, put -- before it)" : ""
        return "unknown option '\(name)' of '\(verb.name)'\(question)\(advice)"
    }

    /// Refuses an operand that is no prefix if `--prefix` was given.
    ///
    /// Whoever types `delete -r audio` may mean another thing than the key `audio`.
    private func checkPrefixes(_ verb: Verb) throws(Failure) {
        guard has("--prefix"), verb.options().contains(.prefix) else { return }
        let slash = UInt8(ascii: "/")
        guard let other = operands.first(where: { $0.last != slash }) else { return }
        let shown = String(decoding: other, as: UTF8.self)
        throw .usage(
            "\(verb.name): '\(shown)' is no prefix; all keys below it are named '\(shown)/'"
        )
    }

    private func checkOperands(_ verb: Verb) throws(Failure) {
        guard !verb.operandCount.contains(operands.count) else { return }
        // The words of the usage after `statectl VERB` begin with the operands.
        let names = verb.usage.split(separator: " ").dropFirst(2 + operands.count)
        let problem =
            if let extra = operands.dropFirst(verb.operandCount.upperBound).first {
                "unexpected operand '\(String(decoding: extra, as: UTF8.self))'"
            } else {
                "\(names.first ?? "an operand") is missing"
            }
        throw .usage("\(verb.name): \(problem); usage: \(verb.usage)")
    }
}
