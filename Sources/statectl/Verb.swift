/// What `statectl` can be asked to do: its name, what it takes, what its help says, and what carries it out.
struct Verb: Sendable {
    let name: String
    /// How many operands it takes.
    let operandCount: ClosedRange<Int>
    /// The options that it takes beside those of every verb.
    let options: [Option]
    /// The first line of its help.
    let usage: String
    /// The rest of its help.
    let details: String
    let perform: @Sendable (Invocation, inout Output) throws(Failure) -> Void

    private init(
        _ name: String,
        _ operandCount: ClosedRange<Int>,
        _ options: [Option],
        _ usage: String,
        _ details: String,
        _ perform: @escaping @Sendable (Invocation, inout Output) throws(Failure) -> Void
    ) {
        self.name = name
        self.operandCount = operandCount
        self.options = options
        self.usage = "statectl \(name) \(usage)"
        self.details = details
        self.perform = perform
    }

    /// - Throws: ``Failure/usage(_:)``, with the verb that is meant, perhaps.
    static func named(_ word: String) throws(Failure) -> Verb {
        if let verb = all.first(where: { $0.name == word }) { return verb }
        let nearest = Spelling.nearest(to: word, among: all.map(\.name))
        throw .usage("unknown verb '\(word)'; the nearest is '\(nearest)'")
    }

    static let all = [
        Verb(
            "get",
            1...1,
            ["--long", "--raw", "--at REV"],
            "KEY [--at REV] [--long] [--raw] [--json]",
            Help.get,
            Statectl.get
        ),
        Verb(
            "set",
            2...2,
            [
                "--if-absent", "--if-present", "--if-revision N", "--if-value V",
                "--durability LEVEL", "--raw",
            ],
            "KEY VALUE|- [--if-absent|--if-present|--if-revision N|--if-value V]"
                + " [--durability LEVEL] [--raw]",
            Help.set,
            Statectl.set
        ),
        Verb(
            "delete",
            0...Int.max,
            ["--dry-run", "--all"],
            "KEY|PREFIX/… [--dry-run] [--all]",
            Help.delete,
            Statectl.delete
        ),
        Verb(
            "list",
            0...1,
            ["--keys", "--long", "--count", "--at REV"],
            "[PATTERN] [--keys|--long|--count] [--at REV] [--json]",
            Help.list,
            Statectl.list
        ),
        Verb(
            "watch",
            1...Int.max,
            [
                "--from REV", "--snapshot", "--latest", "--previous", "--count N", "--timeout T",
                "--name N", "--reset", "--on-error retry|skip",
            ],
            "PATTERN… [--from REV|--snapshot] [--latest] [--previous] [--count N] [--timeout T]"
                + " [--json] [[--name N [--reset]] [--on-error retry|skip] -- COMMAND…]",
            Help.watch,
            Statectl.watch
        ),
        Verb(
            "wait",
            1...1,
            ["--value V", "--present", "--absent", "--timeout T"],
            "KEY [--present|--absent|--value V] [--timeout T] [--json]",
            Help.wait,
            Statectl.wait
        ),
        Verb(
            "handlers",
            0...0,
            ["--forget N"],
            "[--json] | statectl handlers --forget N",
            Help.handlers,
            Statectl.handlers
        ),
        Verb(
            "import",
            1...1,
            ["--prefix P/", "--dots"],
            "FILE|- [--prefix P/] [--dots]",
            Help.import,
            Statectl.importEntries
        ),
        Verb("export", 0...1, [], "[PATTERN]", Help.export, Statectl.export),
        Verb(
            "history",
            1...1,
            ["--limit N"],
            "KEY [--limit N] [--json]",
            Help.history,
            Statectl.history
        ),
        Verb(
            "blame",
            1...1,
            ["--limit N"],
            "KEY [--limit N] [--json]",
            Help.blame,
            Statectl.blame
        ),
        Verb("diff", 1...3, [], "REV1 [REV2] [PATTERN] [--json]", Help.diff, Statectl.diff),
        Verb(
            "revert",
            0...1,
            ["--to REV", "--dry-run", "--all"],
            "PATTERN --to REV [--dry-run] [--all] [--json]",
            Help.revert,
            Statectl.revert
        ),
        Verb(
            "compact",
            0...0,
            ["--to REV", "--shrink"],
            "[--to REV] [--shrink] [--json]",
            Help.compact,
            Statectl.compact
        ),
        Verb("status", 0...0, [], "[--json]", Help.status, Statectl.status),
        Verb("watches", 0...0, [], "[--json]", Help.watches, Statectl.watches),
        Verb(
            "check",
            0...1,
            ["--store", "--data DIRECTORY"],
            "[PATTERN] [--json] | statectl check --store|--data DIRECTORY",
            Help.check,
            Statectl.check
        ),
        Verb("reload", 0...0, [], "[--json]", Help.reload, Statectl.reload),
        Verb("explain", 1...1, [], "KEY [--json]", Help.explain, Statectl.explain),
        Verb("rules", 0...0, [], "[--json]", Help.rules, Statectl.rules),
        Verb("edit", 1...1, [], "KEY [--json]", Help.edit, Statectl.edit),
    ]
}

/// One option of the command line, written as its help has it: `--at REV`.
struct Option: ExpressibleByStringLiteral, Sendable {
    /// With its two dashes.
    let name: String
    /// What stands for its value in the help; nil if it has none.
    let placeholder: String?

    init(stringLiteral text: String) {
        let words = text.split(separator: " ", maxSplits: 1).map { String($0) }
        name = words[0]
        placeholder = words.count > 1 ? words[1] : nil
    }

    /// What every verb takes.
    static let common: [Option] = [
        "--socket PATH", "--reply-timeout T", "--json", "--help", "--version",
    ]
}
