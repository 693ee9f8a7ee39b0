/// A verb of `statectl`: its name, operands, options, help and the function that runs it.
///
/// Each run makes all of them, so making one only keeps literals. It is a class because the runtime
/// would make the type of an optional struct of this size at each start.
final class Verb: Sendable {
    /// The first line of its help, without the program.
    private let line: String
    /// How many operands it takes.
    let operandCount: ClosedRange<Int>
    /// The options that it takes in addition to those of every verb.
    let options: @Sendable () -> [Option]
    /// The rest of its help.
    let details: String
    let perform: @Sendable (Invocation, inout Output) throws(Failure) -> Void

    /// The first word of its usage.
    var name: String { String(line.prefix { $0 != " " }) }

    /// The first line of its help.
    var usage: String { "statectl \(line)" }

    /// Whether a command to run follows `--`.
    var takesCommand: Bool { line.split(separator: " ").contains { $0.hasPrefix("COMMAND") } }

    private init(
        _ line: String,
        _ operandCount: ClosedRange<Int>,
        _ options: @autoclosure @escaping @Sendable () -> [Option],
        _ details: String,
        _ perform: @escaping @Sendable (Invocation, inout Output) throws(Failure) -> Void
    ) {
        self.line = line
        self.operandCount = operandCount
        self.options = options
        self.details = details
        self.perform = perform
    }

    /// The verb of that name, or of a name in ``otherNames``.
    ///
    /// - Throws: ``Failure/usage(_:)``, with the verb that the user may have meant.
    static func named(_ word: String) throws(Failure) -> Verb {
        if let verb = all.first(where: { $0.line.utf8.hasFirstWord(word.utf8) }) { return verb }
        if let name = otherNames[word] { return try named(name) }
        guard word != "restore" else {
            throw .usage(
                "a backup becomes a store by 'stated --restore FILE --data NEWDIRECTORY', while no daemon uses that"
            )
        }
        let nearest = meanings[word] ?? Spelling.nearest(to: word, among: all.map(\.name))
        let question =
            nearest == nil ? "; 'statectl --help' lists them" : Spelling.question(nearest)
        throw .usage("unknown verb '\(word)'\(question)")
    }

    /// The names that hands type, and that can mean only one verb.
    private static let otherNames = [
        "cat": "get", "del": "delete", "info": "status", "keys": "list", "ls": "list",
        "put": "set", "rm": "delete",
    ]

    /// What other programs run, not people.
    static let ofPrograms = ["complete", "credential"]

    /// What other programs call something similar: only a hint.
    private static let meanings = [
        "add": "set", "config": "check-config", "copy": "cp", "create": "set", "decr": "incr",
        "dump": "export", "erase": "delete", "find": "list", "follow": "watch", "grep": "list",
        "has": "exists", "increment": "incr", "load": "import", "log": "history", "mget": "get",
        "monitor": "top", "move": "mv", "mset": "set", "multi": "txn", "print": "get",
        "purge": "delete", "read": "get", "remove": "delete", "rename": "mv", "rollback": "revert",
        "save": "backup", "scan": "list", "search": "list", "show": "get", "snapshot": "backup",
        "stat": "status", "stats": "metrics", "store": "set", "subscribe": "watch",
        "tail": "watch", "touch": "set", "transaction": "txn", "undo": "revert",
        "unlink": "delete", "unset": "delete", "validate": "check-config", "write": "set",
    ]

    static let all = [
        Verb(
            "get KEY… [--at REV|TIME] [--fresh] [--long] [--raw] [--json]",
            1...Int.max,
            ["--long", "--raw", "--at REV|TIME", "--fresh", .prefix],
            Help.get,
            Statectl.get
        ),
        Verb(
            "set KEY VALUE|- [--if-absent|--if-present|--if-revision N|--if-value V]"
                + " [--ttl TIME] [--durability LEVEL] [--raw] [--literal]"
                + " | statectl set KEY=VALUE… [--ttl TIME]",
            1...Int.max,
            [
                "--if-absent", "--if-present", "--if-revision N", "--if-value V", "--ttl TIME",
                "--durability LEVEL", "--raw", "--literal",
            ],
            Help.set,
            Statectl.set
        ),
        Verb("incr KEY [N] [--json]", 1...2, [], Help.increment, Statectl.increment),
        Verb("txn FILE|- [--json]", 1...1, [], Help.transaction, Statectl.transaction),
        Verb("expire KEY TIME [--json]", 2...2, [], Help.expire, Statectl.expire),
        Verb("ttl KEY [--json]", 1...1, [], Help.timeLeft, Statectl.timeLeft),
        Verb("persist KEY [--json]", 1...1, [], Help.persist, Statectl.persist),
        Verb(
            "delete KEY|PREFIX/… [--dry-run] [--all]",
            0...Int.max,
            ["--dry-run", "--all", .prefix],
            Help.delete,
            Statectl.delete
        ),
        Verb(
            "exists KEY|PREFIX/… [--json]",
            1...Int.max,
            [.prefix],
            Help.exists,
            Statectl.exists
        ),
        Verb(
            "cp KEY NEWKEY | PREFIX/ NEWPREFIX/ [--if-absent] [--dry-run] [--json]",
            2...2,
            ["--if-absent", "--dry-run", .prefix],
            Help.copy,
            Statectl.copy
        ),
        Verb(
            "mv KEY NEWKEY | PREFIX/ NEWPREFIX/ [--if-absent] [--dry-run] [--json]",
            2...2,
            ["--if-absent", "--dry-run", .prefix],
            Help.move,
            Statectl.move
        ),
        Verb(
            "list [PATTERN] [--keys|--long|--count|--children] [--at REV|TIME] [--limit N]"
                + " [--no-pager] [--json]",
            0...1,
            [
                "--keys", "--long", "--count", "--children", "--at REV|TIME", "--limit N",
                "--no-pager", .prefix,
            ],
            Help.list,
            Statectl.list
        ),
        Verb(
            "tree [PREFIX/] [--depth N]",
            0...1,
            ["--depth N", .prefix],
            Help.tree,
            Statectl.tree
        ),
        Verb(
            "watch PATTERN… [--from REV|--snapshot] [--latest] [--previous] [--time] [--count N]"
                + " [--timeout T] [--for-daemon] [--ready-fd N] [--json] [[--name N [--reset]] [--on-error retry|skip] -- COMMAND…]",
            1...Int.max,
            [
                "--from REV", "--snapshot", "--latest", "--previous", "--time", "--count N",
                "--timeout T", "--for-daemon", "--ready-fd N", "--name N", "--reset",
                "--on-error retry|skip", .prefix,
            ],
            Help.watch,
            Statectl.watch
        ),
        Verb(
            "wait KEY [--present|--absent|--value V] [--timeout T] [--for-daemon] [--json]",
            1...1,
            ["--value V", "--present", "--absent", "--timeout T", "--for-daemon"],
            Help.wait,
            Statectl.wait
        ),
        Verb(
            "handlers [--json] | statectl handlers --forget N",
            0...0,
            ["--forget N"],
            Help.handlers,
            Statectl.handlers
        ),
        Verb(
            "import FILE|- [--format lines|env|ini|properties] [--prefix P/] [--dots]",
            1...1,
            ["--format lines|env|ini|properties", "--prefix P/", "--dots"],
            Help.import,
            Statectl.importEntries
        ),
        Verb("export [PATTERN]", 0...1, [.prefix], Help.export, Statectl.export),
        Verb(
            "backup FILE|- [--no-history | --since FILE] [--json] | statectl backup --verify FILE",
            1...1,
            ["--no-history", "--since FILE", "--verify"],
            Help.backup,
            Statectl.backup
        ),
        Verb(
            "history KEY [--limit N] [--since REV|TIME] [--json]",
            1...1,
            ["--limit N", "--since REV|TIME"],
            Help.history,
            Statectl.history
        ),
        Verb(
            "blame KEY [--limit N] [--since REV|TIME] [--json]",
            1...1,
            ["--limit N", "--since REV|TIME"],
            Help.blame,
            Statectl.blame
        ),
        Verb(
            "diff REV1|TIME [REV2|TIME] [PATTERN] [--json] | statectl diff --defaults [PATTERN] [--json]",
            0...3,
            ["--defaults"],
            Help.diff,
            Statectl.diff
        ),
        Verb(
            "revert PATTERN --to REV|TIME [--dry-run] [--all] [--json]",
            0...1,
            ["--to REV|TIME", "--dry-run", "--all", .prefix],
            Help.revert,
            Statectl.revert
        ),
        Verb(
            "apply FILE|- [--prune [--all]] [--dry-run] [--json]",
            1...1,
            ["--prune", "--all", "--dry-run"],
            Help.apply,
            Statectl.apply
        ),
        Verb(
            "convert PATTERN [--every] [--raw] [--dry-run] [--json] -- COMMAND…",
            1...1,
            ["--every", "--raw", "--dry-run"],
            Help.convert,
            Statectl.convert
        ),
        Verb(
            "reset KEY|PREFIX/ [--all] [--dry-run] [--json]",
            0...1,
            ["--all", "--dry-run", .prefix],
            Help.reset,
            Statectl.reset
        ),
        Verb(
            "compact [--to REV|TIME] [--shrink] [--json]",
            0...0,
            ["--to REV|TIME", "--shrink"],
            Help.compact,
            Statectl.compact
        ),
        Verb(
            "lock NAME [--wait TIME] [--shared] -- COMMAND…",
            1...1,
            ["--wait TIME", "--shared"],
            Help.lock,
            Statectl.lock
        ),
        Verb("locks [NAME] [--json]", 0...1, [], Help.locks, Statectl.locks),
        Verb(
            "elect KEY [--value V] [--wait TIME] -- COMMAND…",
            1...1,
            ["--value V", "--wait TIME"],
            Help.elect,
            Statectl.elect
        ),
        Verb(
            "service KEY VALUE [--if-absent] -- COMMAND…",
            2...2,
            ["--if-absent"],
            Help.service,
            Statectl.service
        ),
        Verb("sync [--local] [--json]", 0...0, ["--local"], Help.sync, Statectl.sync),
        Verb("ping [--json]", 0...0, [], Help.ping, Statectl.ping),
        Verb("status [--json]", 0...0, [], Help.status, Statectl.status),
        Verb("health [--json]", 0...0, [], Help.health, Statectl.health),
        Verb(
            "top [--interval T] [--once [--json]]",
            0...0,
            ["--interval T", "--once"],
            Help.top,
            Statectl.top
        ),
        Verb(
            "metrics [--http | --textfile FILE]",
            0...0,
            ["--http", "--textfile FILE"],
            Help.metrics,
            Statectl.metrics
        ),
        Verb("credential PREFIX/", 1...1, [], Help.credential, Statectl.credential),
        Verb("watches [--json]", 0...0, [], Help.watches, Statectl.watches),
        Verb(
            "check [PATTERN] [--json] | statectl check --store|--data DIRECTORY",
            0...1,
            ["--store", "--data DIRECTORY"],
            Help.check,
            Statectl.check
        ),
        Verb("reload [--dry-run] [--json]", 0...0, ["--dry-run"], Help.reload, Statectl.reload),
        Verb("check-config [--json]", 0...0, [], Help.checkConfig, Statectl.checkConfiguration),
        Verb("version", 0...0, [], Help.version, Statectl.version),
        Verb("completion bash|zsh|fish", 1...1, [], Help.completion, Statectl.completion),
        Verb("explain KEY [--json]", 1...1, [], Help.explain, Statectl.explain),
        Verb("rules [--json]", 0...0, [], Help.rules, Statectl.rules),
        Verb("edit KEY [--json]", 1...1, [], Help.edit, Statectl.edit),
        Verb(
            "complete [--socket PATH] -- WORD…",
            0...Int.max,
            [],
            Help.complete,
            Statectl.complete
        ),
    ]
}

extension String.UTF8View {
    /// Whether `word` is all that comes before the first space, or the end.
    func hasFirstWord(_ word: String.UTF8View) -> Bool {
        starts(with: word) && dropFirst(word.count).first ?? UInt8(ascii: " ") == UInt8(ascii: " ")
    }
}
