import StateEngine
import StateWire

/// COMMAND, and HELP of verbs with subcommands.
struct DocumentationCommands {
    func run(_ command: Command.DescribeCommand, _ context: borrowing CommandContext) {
        switch command {
        case .count: context.output.writeInteger(Int64(Verb.all.count))
        case .list:
            context.output.writeArray(Verb.all.count)
            for verb in Verb.all { context.output.writeBulk(verb.name.rawValue) }
        case .all:
            context.output.writeArray(Verb.all.count)
            for verb in Verb.all { describe(verb, context) }
        case .information(let names):
            guard names.count > 0 else { return run(.all, context) }
            context.output.writeArray(names.count)
            for index in 0..<names.count {
                if let verb = Verb.named(names[index]) {
                    describe(verb, context)
                } else {
                    context.output.writeNullArray(context.version)
                }
            }
        case .documentation(let names): document(names, context)
        case .keys(let verb, let arguments, let withFlags):
            let places = verb.keyPlaces(arguments) ?? []
            context.output.writeArray(places.count)
            for place in places {
                if withFlags { context.output.writeArray(2) }
                context.output.writeBulk(arguments[place])
                guard withFlags else { continue }
                context.output.writeArray(1)
                context.output.writeSimple(verb.isWrite ? "RW" : "RO")
            }
        }
    }

    /// HELP, made from the arguments of the verb.
    func help(_ verb: Verb.Name, _ context: borrowing CommandContext) {
        let name = verb.rawValue.uppercased()
        var lines = ["\(name) <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
        let syntax = VerbDocumentation.find(verb).map { "\($0.syntax)" } ?? ""
        lines += DocumentationCommands.choices(of: syntax)
        context.output.writeArray(lines.count)
        for line in lines { context.output.writeBulk(line) }
    }

    /// The choices of a syntax that is one choice.
    private static func choices(of syntax: String) -> [String] {
        var (choices, depth) = ([""], 0)
        for character in syntax.dropFirst().dropLast() {
            if "[<".contains(character) { depth += 1 }
            if "]>".contains(character) { depth -= 1 }
            if character == "|", depth == 0 {
                choices.append("")
            } else {
                choices[choices.count - 1].append(character)
            }
        }
        return choices.map { $0.split(separator: " ").joined(separator: " ") }
    }

    private func describe(_ verb: Verb, _ context: borrowing CommandContext) {
        context.output.writeArray(10)
        context.output.writeBulk(verb.name.rawValue)
        context.output.writeInteger(Int64(verb.arity))
        var flags: [StaticString] = [
            verb.isWrite ? "write" : verb.isAboutChannels ? "pubsub" : "readonly"
        ]
        if verb.isForAdministrators { flags.append("admin") }
        if verb.hasMovableKeys { flags.append("movablekeys") }
        context.output.writeArray(flags.count)
        for flag in flags { context.output.writeSimple(flag) }
        context.output.writeInteger(Int64(verb.keys.first))
        context.output.writeInteger(Int64(verb.keys.last))
        context.output.writeInteger(Int64(verb.keys.step))
        let categories = verb.categories
        context.output.writeArray(categories.count)
        for category in categories { context.output.writeBulk("@" + category) }
        // Tips, key specifications, subcommands.
        for _ in 0..<3 { context.output.writeArray(0) }
    }

    // MARK: DOCS

    /// Of all verbs; by name also of those of Redis that are refused, with the reason.
    private func document(_ names: Arguments, _ context: borrowing CommandContext) {
        guard names.count > 0 else {
            context.output.writeMap(Verb.all.count, context.version)
            for verb in Verb.all { document(verb, context) }
            return
        }
        let found = (0..<names.count).map { index in
            (name: names[index].text, verb: Verb.named(names[index]))
        }
        let refusals = found.map { $0.verb == nil ? RefusedCommands.reason(for: $0.name) : nil }
        let known = zip(found, refusals).filter { $0.verb != nil || $1 != nil }
        context.output.writeMap(known.count, context.version)
        for (found, reason) in known {
            if let verb = found.verb {
                document(verb, context)
            } else if let reason {
                context.output.writeBulk(found.name.lowercased())
                context.output.writeMap(1, context.version)
                context.output.writeField("compatibility", "refused: \(reason)")
            }
        }
    }

    private func document(_ verb: Verb, _ context: borrowing CommandContext) {
        let documentation = verb.documentation
        let arguments = CommandSyntax.read(documentation.syntax)
        let isRedis = documentation.group != .state
        context.output.writeBulk(verb.name.rawValue)
        context.output.writeMap((isRedis ? 4 : 2) + (arguments.isEmpty ? 0 : 1), context.version)
        context.output.writeField("summary", "\(verb.summary)")
        if isRedis { context.output.writeField("since", "\(documentation.since)") }
        context.output.writeField("group", documentation.group.rawValue)
        if let comparison = documentation.comparison {
            context.output.writeField("compatibility", comparison)
        }
        guard !arguments.isEmpty else { return }
        if let subcommands = arguments.subcommands {
            context.output.writeBulk("subcommands")
            context.output.writeMap(subcommands.count, context.version)
            for (word, arguments) in subcommands { document(word, arguments, of: verb, context) }
            return
        }
        context.output.writeBulk("arguments")
        write(arguments, context)
    }

    /// A subcommand, which has a name such as `client|kill`.
    private func document(
        _ word: String,
        _ arguments: [CommandSyntax],
        of verb: Verb,
        _ context: borrowing CommandContext
    ) {
        context.output.writeBulk("\(verb.name.rawValue)|\(word.lowercased())")
        context.output.writeMap(arguments.isEmpty ? 3 : 4, context.version)
        context.output.writeField("summary", "\(verb.summary)")
        context.output.writeField("since", "\(verb.documentation.since)")
        context.output.writeField("group", verb.documentation.group.rawValue)
        guard !arguments.isEmpty else { return }
        context.output.writeBulk("arguments")
        write(arguments, context)
    }

    private func write(_ arguments: [CommandSyntax], _ context: borrowing CommandContext) {
        context.output.writeArray(arguments.count)
        for argument in arguments { write(argument, context) }
    }

    private func write(_ argument: CommandSyntax, _ context: borrowing CommandContext) {
        var flags: [StaticString] = []
        if argument.isOptional { flags.append("optional") }
        if argument.isRepeated { flags.append("multiple") }
        var (type, parts) = ("", [CommandSyntax]())
        switch argument.form {
        case .token: type = "pure-token"
        case .argument(let name): type = name
        case .choice(let choices): (type, parts) = ("oneof", choices)
        case .block(let items): (type, parts) = ("block", items)
        }
        let count =
            2 + (argument.token == nil ? 0 : 1) + (flags.isEmpty ? 0 : 1)
            + (parts.isEmpty ? 0 : 1)
        context.output.writeMap(count, context.version)
        context.output.writeField("name", argument.name)
        context.output.writeField("type", type)
        if let token = argument.token { context.output.writeField("token", token) }
        if !flags.isEmpty {
            context.output.writeBulk("flags")
            context.output.writeArray(flags.count)
            for flag in flags { context.output.writeSimple(flag) }
        }
        guard !parts.isEmpty else { return }
        context.output.writeBulk("arguments")
        write(parts, context)
    }
}

extension Verb {
    /// Whether its arguments say how many keys there are.
    fileprivate var hasMovableKeys: Bool {
        switch name {
        case .msetex, .eval, .evalRo, .evalsha, .evalshaRo: true
        default: false
        }
    }
}
