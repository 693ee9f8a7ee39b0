/// One option of the command line, written as in its help: `--at REV`.
struct Option: ExpressibleByStringLiteral, Equatable, Sendable {
    private let text: String

    init(stringLiteral text: String) { self.text = text }

    /// Says that the operands are prefixes; each must end in `/`.
    static let prefix: Option = "--prefix"

    /// The option of that name, or the one that a letter or another program's name stands for.
    static func named(_ name: String, among known: [Option], isBeforeVerb: Bool) -> Option? {
        if let option = known.first(where: { $0.isNamed(name) }) { return option }
        let others =
            isBeforeVerb ? [("-v", "--version")] + otherNames : otherNames
        return others.lazy.filter { $0.0 == name }
            .compactMap { _, long in known.first { $0 == Option(stringLiteral: long) } }
            .first
    }

    private static let otherNames = [
        ("-h", "--help"), ("-V", "--version"), ("-n", "--dry-run"), ("-l", "--long"),
        ("-v", "--long"), ("-r", "--prefix"), ("--recursive", "--prefix"),
    ]

    /// With its two dashes.
    var name: String { String(text.prefix { $0 != " " }) }

    /// The placeholder of its value in the help; nil if it takes no value.
    var placeholder: String? {
        text.firstIndex(of: " ").map { String(text[text.index(after: $0)...]) }
    }

    func isNamed(_ name: String) -> Bool { text.utf8.hasFirstWord(name.utf8) }

    /// The options of every verb.
    static let common: [Option] = [
        "--socket PATH", "--system", "--user", "--reply-timeout T", "--json", "-o FORMAT", "--help",
        "--version",
    ]
}
