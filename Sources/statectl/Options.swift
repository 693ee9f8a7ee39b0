/// What `statectl` can be asked to do.
enum Verb: String, CaseIterable {
    case get
    case set
    case delete
    case list
    case watch
    case `import`
    case export
    case compact
    case status
    case check

    /// The options that this verb takes beside those of every verb.
    var options: [Option] {
        switch self {
        case .get: [Option("--long"), Option("--raw")]
        case .set:
            [
                Option("--if-absent"), Option("--if-present"), Option("--if-revision", "N"),
                Option("--if-value", "V"), Option("--durability", "LEVEL"), Option("--raw"),
            ]
        case .delete: [Option("--dry-run"), Option("--all")]
        case .list: [Option("--keys"), Option("--long"), Option("--count")]
        case .watch:
            [
                Option("--snapshot"), Option("--previous"), Option("--count", "N"),
                Option("--timeout", "T"),
            ]
        case .import: [Option("--prefix", "P/"), Option("--dots")]
        case .check: [Option("--data", "DIRECTORY")]
        case .compact: [Option("--to", "REV"), Option("--shrink")]
        case .export, .status: []
        }
    }

    /// How many operands it takes.
    var operandCount: ClosedRange<Int> {
        switch self {
        case .get, .import: 1...1
        case .set: 2...2
        case .delete: 0...Int.max
        case .list, .export: 0...1
        case .watch: 1...Int.max
        case .compact, .status, .check: 0...0
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
        [Option("--socket", "PATH"), Option("--json"), Option("--help"), Option("--version")]
    }
}
