import StateModel
import StateWire

/// The words before the cursor, as far as they say what the next one may be.
///
/// It accepts any words: what makes no sense yet is skipped.
struct CompletedLine {
    /// What a word stands for.
    enum Meaning {
        case verb
        case option
        case key
        case revision
        case handler
        case lock
        /// One of these words.
        case choice([String])
        case file
        /// A command that statectl runs.
        case command
        /// Text of which nothing is known.
        case text
    }

    /// The word before the cursor, which may be empty.
    let word: [UInt8]
    /// What is before the value in ``word``: `--at=`, else nothing.
    private(set) var fixed: [UInt8] = []
    private(set) var verb: Verb?
    private(set) var operands: [[UInt8]] = []
    private(set) var socket: String?
    private(set) var daemon: SocketLocation.Daemon?
    private(set) var meaning = Meaning.verb

    init(_ words: [[UInt8]]) {
        word = words.last ?? []
        var rest = words.dropLast()[...]
        while let next = rest.popFirst() {
            if next == "--".bytes {
                meaning = end(with: rest)
                return
            }
            guard let option = option(of: next) else {
                add(next)
                continue
            }
            guard let value = Self.value(of: option, next, &rest) else {
                meaning = Self.meaning(of: option)
                return
            }
            note(option, value)
        }
        meaning = meaningOfWord()
    }

    /// The options that may be given here.
    var options: [Option] { Option.common + (verb?.options() ?? []) }

    /// The value that is completed: the word, without the name of its option.
    var value: [UInt8] { Array(word.dropFirst(fixed.count)) }

    private static let equals = UInt8(ascii: "=")

    /// The value that is attached, or follows; empty of an option without one; nil if the word is
    /// its value.
    private static func value(
        of option: Option,
        _ word: [UInt8],
        _ rest: inout ArraySlice<[UInt8]>
    ) -> [UInt8]? {
        if let end = word.firstIndex(of: equals) { return Array(word[(end + 1)...]) }
        return option.placeholder == nil ? [] : rest.popFirst()
    }

    /// Which daemon is asked.
    private mutating func note(_ option: Option, _ value: [UInt8]) {
        switch option.name {
        case "--socket": socket = String(decoding: value, as: UTF8.self)
        case "--system": daemon = .system
        case "--user": daemon = .user
        default: break
        }
    }

    private mutating func add(_ word: [UInt8]) {
        guard verb == nil else { return operands.append(word) }
        verb = try? Verb.named(String(decoding: word, as: UTF8.self))
    }

    private mutating func end(with rest: ArraySlice<[UInt8]>) -> Meaning {
        if verb?.takesCommand ?? false { return .command }
        operands += rest
        return meaningOfOperand
    }

    private func option(of word: [UInt8]) -> Option? {
        let name = String(decoding: word.prefix { $0 != Self.equals }, as: UTF8.self)
        return options.first { $0.name == name }
    }

    private mutating func meaningOfWord() -> Meaning {
        guard word.first == UInt8(ascii: "-") else { return meaningOfOperand }
        guard let end = word.firstIndex(of: Self.equals), let option = option(of: word) else {
            return .option
        }
        fixed = Array(word[...end])
        return Self.meaning(of: option)
    }

    private static func meaning(of option: Option) -> Meaning {
        switch option.name {
        case "--at", "--from", "--to", "--if-revision": .revision
        case "--name", "--forget": .handler
        case "--prefix": .key
        case "-o": .choice(["json"])
        case "--socket", "--since", "--data", "--textfile": .file
        case "--durability": .choice(["memory", "interval", "synced"])
        case "--format": .choice(["lines", "env", "ini", "properties"])
        case "--on-error": .choice(["retry", "skip"])
        default: .text
        }
    }

    private var meaningOfOperand: Meaning {
        guard let verb else { return .verb }
        switch verb.name {
        case "get", "delete", "watch", "exists", "cp", "mv": return .key
        case "import", "txn", "backup": return operands.isEmpty ? .file : .text
        case "lock", "locks": return operands.isEmpty ? .lock : .text
        case "diff": return operands.count < 2 ? .revision : .key
        case "complete": return .text
        case "completion":
            return operands.isEmpty ? .choice(["bash", "zsh", "fish"]) : .text
        default:
            return operands.isEmpty && verb.operandCount.upperBound > 0 ? .key : .text
        }
    }
}
