import StateClient
import StateModel
import StateTestSupport

/// A call of each verb of `statectl` that works on the store of ``VerbStore``.
///
/// The tables that go over all verbs use these; ``VerbTableTests`` fails for a verb without a row.
struct VerbRow: CustomStringConvertible, Sendable {
    let verb: String
    let arguments: [String]
    /// What it reads from standard input; nil if it reads nothing.
    var input: String?

    var description: String { ([verb] + arguments).joined(separator: " ") }

    init(_ words: String, input: String? = nil) {
        let words = words.split(separator: " ").map(String.init)
        (verb, arguments, self.input) = (words[0], Array(words.dropFirst()), input)
    }

    static let all = [
        VerbRow("get victim"), VerbRow("get victim --long"), VerbRow("set other 1"),
        VerbRow("set other -", input: "2"), VerbRow("incr number"),
        VerbRow("txn -", input: "set other = 3\n"), VerbRow("expire brief 1h"),
        VerbRow("ttl brief"), VerbRow("persist brief"), VerbRow("delete spare"),
        VerbRow("exists victim"), VerbRow("cp spare copied"), VerbRow("mv spare moved"),
        VerbRow("list"), VerbRow("list --keys"), VerbRow("list --long"),
        VerbRow("list zz/ --count"),
        VerbRow("list / --children"), VerbRow("tree"),
        VerbRow("watch / --snapshot --count 2000"), VerbRow("wait victim"), VerbRow("handlers"),
        VerbRow("import -", input: "other = 4\n"), VerbRow("export"), VerbRow("backup -"),
        VerbRow("history victim"), VerbRow("blame victim"), VerbRow("diff 1 now"),
        VerbRow("revert spare --to 1"), VerbRow("apply -", input: "{ other: \"5\" }"),
        VerbRow("convert zz/ --every --dry-run -- cat"), VerbRow("reset spare"), VerbRow("compact"),
        VerbRow("lock l -- true"), VerbRow("locks"), VerbRow("elect leader -- true"),
        VerbRow("service s v -- true"), VerbRow("sync"), VerbRow("ping"), VerbRow("status"),
        VerbRow("health"), VerbRow("top --once --interval 100ms"), VerbRow("metrics"),
        VerbRow("credential credentials/", input: ""), VerbRow("watches"), VerbRow("check"),
        VerbRow("reload"), VerbRow("check-config"), VerbRow("explain victim"), VerbRow("rules"),
        VerbRow("edit victim"), VerbRow("complete -- get zz/"), VerbRow("version"),
        VerbRow("completion bash"),
    ]
}

/// A daemon whose keys would do harm as commands.
final class VerbStore {
    let daemon: Daemon
    private let client: Client
    private let directory: TemporaryDirectory

    /// It has more keys than the largest buffer of `statectl` holds.
    init() throws {
        directory = try TemporaryDirectory()
        daemon = try Daemon("--config", try directory.write("{}", to: "stated.json5"))
        client = try daemon.connect()
        let filler = String(repeating: "x", count: 40)
        try client.set((0..<2_000).map { (try Key("zz/\($0)/\(filler)"), [UInt8(ascii: "1")]) })
        try restore()
    }

    /// Makes the keys what the rows expect.
    func restore() throws {
        try client.set(
            ["victim": "precious", "DEL victim": "x", "FLUSHALL": "x"].map {
                (try Key($0.key), Array($0.value.utf8))
            }
        )
        try client.set([("spare", []), ("number", [UInt8(ascii: "1")])])
        try client.set([], for: "brief", expiresAfter: .seconds(3_600))
    }

    /// Runs the words that follow the name of `statectl` in a shell as `"$@"`.
    func run(_ row: VerbRow, as script: String = #"exec "$@""#) throws -> CommandResult {
        try run([row.verb] + row.arguments, input: row.input ?? "", as: script)
    }

    func run(
        _ words: [String],
        input: String = "",
        as script: String = #"exec "$@""#
    ) throws -> CommandResult {
        try runCommand(
            "sh",
            ["-c", script, "sh", builtProgram("statectl")] + words,
            input: Array(input.utf8),
            environment: ["STATED_SOCKET": daemon.socketPath, "EDITOR": "true"]
        )
    }

    /// The newest revision: what a call that changed nothing leaves as it was.
    func revision() throws -> Int64 {
        try client.status().first { $0.name == "revision" }?.number ?? -1
    }

    /// How many keys there are.
    func keyCount() throws -> Int64 { try client.count(of: .everything) }

    func value(of key: Key) throws -> String? {
        try client.value(for: key).map { String(decoding: $0, as: UTF8.self) }
    }
}
