/// The arguments of a command, read from the notation of Redis's documentation.
///
/// `[…]` is optional, `<…>` a choice, `|` separates choices, and `key [key ...]` repeats. Words in
/// upper case stand for themselves.
package struct CommandSyntax: Sendable {
    package indirect enum Form: Sendable {
        /// A word that stands for itself.
        case token
        /// An argument of a type of COMMAND DOCS.
        case argument(type: String)
        case choice([CommandSyntax])
        case block([CommandSyntax])
    }

    package var form: Form
    package var name: String
    /// The word before the argument.
    package var token: String?
    package var isOptional = false
    package var isRepeated = false

    /// Reads the arguments of a command.
    package static func read(_ text: StaticString) -> [CommandSyntax] {
        var reader = Reader(words: Reader.words(of: "\(text)"))
        return reader.sequence()
    }

    private struct Reader {
        var words: [Substring]
        var index = 0
        /// Whether the last sequence ended in `...`.
        var repeats = false

        static func words(of text: String) -> [Substring] {
            var spaced = ""
            for character in text {
                spaced += "[]<>|".contains(character) ? " \(character) " : String(character)
            }
            return spaced.split(separator: " ").map { $0 }
        }

        var next: Substring? { index < words.count ? words[index] : nil }

        mutating func sequence() -> [CommandSyntax] {
            var items: [CommandSyntax] = []
            repeats = false
            while let word = next, word != "|", word != "]", word != ">" {
                index += 1
                switch word {
                case "...": repeats = true
                case "[":
                    let (choices, isRepetition) = self.choices()
                    if isRepetition, let repeated = choices.first {
                        items.repeatLast(repeated.count)
                    } else {
                        var item = CommandSyntax(choosing: choices)
                        item.isOptional = true
                        items.append(item)
                    }
                case "<": items.append(CommandSyntax(choosing: choices().choices))
                default: items.append(item(word))
                }
            }
            return items
        }

        /// Reads up to the end of a bracket, and over it.
        private mutating func choices() -> (choices: [[CommandSyntax]], isRepetition: Bool) {
            var choices: [[CommandSyntax]] = []
            var isRepetition = false
            while true {
                choices.append(sequence())
                isRepetition = repeats
                repeats = false
                guard next == "|" else { break }
                index += 1
            }
            index += 1
            return (choices, isRepetition)
        }

        private mutating func item(_ word: Substring) -> CommandSyntax {
            guard word.isToken else {
                return CommandSyntax(form: .argument(type: word.argumentType), name: String(word))
            }
            let name = word.lowercased()
            if let argument = next, argument == "<" {
                index += 1
                var item = CommandSyntax(choosing: choices().choices)
                item.token = String(word)
                item.name = name
                return item
            }
            if let argument = next, !["[", "]", "<", ">", "|", "..."].contains(argument),
                !argument.isToken
            {
                index += 1
                return CommandSyntax(
                    form: .argument(type: argument.argumentType),
                    name: String(argument),
                    token: String(word)
                )
            }
            return CommandSyntax(form: .token, name: name, token: String(word))
        }
    }

    private init(form: Form, name: String, token: String? = nil) {
        (self.form, self.name, self.token) = (form, name, token)
    }

    private init(choosing choices: [[CommandSyntax]]) {
        let items = choices.map { CommandSyntax(block: $0) }
        if items.count == 1 {
            self = items[0]
        } else {
            self.init(form: .choice(items), name: items[0].name)
        }
    }

    fileprivate init(block items: [CommandSyntax]) {
        if items.count == 1 {
            self = items[0]
        } else {
            self.init(form: .block(items), name: items.first?.name ?? "")
        }
    }
}

extension [CommandSyntax] {
    /// The subcommands with their arguments, if these arguments are one choice of words with what
    /// follows each; nil if they are not.
    package var subcommands: [(word: String, arguments: [CommandSyntax])]? {
        guard count == 1, self[0].token == nil, !self[0].isOptional,
            case .choice(let choices) = self[0].form
        else { return nil }
        let found = choices.compactMap(\.subcommand)
        return found.count == choices.count ? found : nil
    }
}

extension CommandSyntax {
    fileprivate var subcommand: (word: String, arguments: [CommandSyntax])? {
        if token == nil, case .block(let items) = form, let first = items.first?.subcommand {
            return (first.word, first.arguments + items.dropFirst())
        }
        guard let token else { return nil }
        if case .token = form { return (token, []) }
        var argument = self
        argument.token = nil
        return (token, [argument])
    }
}

extension [CommandSyntax] {
    /// Marks the last items as repeated, as one block.
    fileprivate mutating func repeatLast(_ count: Int) {
        var item = CommandSyntax(block: suffix(count))
        item.isRepeated = true
        removeLast(Swift.min(count, self.count))
        append(item)
    }
}

extension Substring {
    fileprivate var isToken: Bool {
        contains(where: \.isUppercase) && !contains(where: \.isLowercase)
    }

    fileprivate var argumentType: String {
        switch self {
        case "key", "newkey", "source", "destination": "key"
        case "pattern": "pattern"
        case "unix-time-seconds", "unix-time-milliseconds": "unix-time"
        case "seconds", "milliseconds", "ttl", "numkeys", "count", "cursor", "index", "offset",
            "start", "end", "decrement", "increment", "timeout", "client-id", "numreplicas",
            "numlocal", "revision", "protover", "destination-db", "maxage", "frequency", "watch":
            "integer"
        default: "string"
        }
    }
}
