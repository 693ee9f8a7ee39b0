/// What `statectl` can be asked to do.
enum Verb: String, CaseIterable {
    case get
    case set
    case delete
    case list
    case watch
    case wait
    case handlers
    case `import`
    case export
    case history
    case blame
    case diff
    case revert
    case compact
    case status
    case watches
    case check
    case reload
    case explain
    case rules
    case edit

    /// The options that this verb takes beside those of every verb.
    var options: [Option] {
        switch self {
        case .get: [Option("--long"), Option("--raw"), Option("--at", "REV")]
        case .set:
            [
                Option("--if-absent"), Option("--if-present"), Option("--if-revision", "N"),
                Option("--if-value", "V"), Option("--durability", "LEVEL"), Option("--raw"),
            ]
        case .delete: [Option("--dry-run"), Option("--all")]
        case .list:
            [Option("--keys"), Option("--long"), Option("--count"), Option("--at", "REV")]
        case .watch:
            [
                Option("--from", "REV"), Option("--snapshot"), Option("--latest"),
                Option("--previous"), Option("--count", "N"), Option("--timeout", "T"),
                Option("--name", "N"), Option("--reset"), Option("--on-error", "retry|skip"),
            ]
        case .wait:
            [
                Option("--value", "V"), Option("--present"), Option("--absent"),
                Option("--timeout", "T"),
            ]
        case .handlers: [Option("--forget", "N")]
        case .import: [Option("--prefix", "P/"), Option("--dots")]
        case .check: [Option("--store"), Option("--data", "DIRECTORY")]
        case .history, .blame: [Option("--limit", "N")]
        case .revert: [Option("--to", "REV"), Option("--dry-run"), Option("--all")]
        case .compact: [Option("--to", "REV"), Option("--shrink")]
        case .diff, .export, .status, .watches, .reload, .explain, .rules, .edit: []
        }
    }

    /// How many operands it takes.
    var operandCount: ClosedRange<Int> {
        switch self {
        case .get, .import, .wait, .history, .blame, .explain, .edit: 1...1
        case .diff: 1...3
        case .revert: 0...1
        case .set: 2...2
        case .delete: 0...Int.max
        case .list, .export, .check: 0...1
        case .watch: 1...Int.max
        case .compact, .status, .watches, .handlers, .reload, .rules: 0...0
        }
    }
}

/// One option of the command line.
struct Option {
    /// With its two dashes.
    let name: String
    /// What stands for its value in the help; nil where it has none.
    let placeholder: String?

    init(_ name: String, _ placeholder: String? = nil) {
        self.name = name
        self.placeholder = placeholder
    }

    /// What every verb takes.
    static var common: [Option] {
        [
            Option("--socket", "PATH"), Option("--reply-timeout", "T"), Option("--json"),
            Option("--help"), Option("--version"),
        ]
    }
}
