import StateClient
import StateModel

extension Statectl {
    /// The longest file.
    private static let fileByteLimit = 256 << 20

    /// `apply FILE|-`: makes keys what a file says, in one commit.
    static func apply(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let desired = try desiredState(invocation)
        let pruned = try prunedPrefixes(invocation, desired)
        let client = try invocation.connect()
        let isDryRun = invocation.has("--dry-run")
        let (changes, commit) = try KeyChanges.apply(client, isDryRun: isDryRun) {
            () throws(StateError) in
            try KeyChanges(to: desired, pruning: pruned, client)
        }
        try changes.write(
            isDryRun ? nil : commit,
            isDryRun: isDryRun,
            isJSON: invocation.isJSON,
            &output
        )
    }

    private static func desiredState(_ invocation: Invocation) throws(Failure) -> DesiredState {
        let path = invocation.operands[0]
        let name =
            path == "-".bytes ? "standard input" : String(decoding: path, as: UTF8.self)
        var input = try Input(path: path)
        return try DesiredState(try input.readText(limit: fileByteLimit), of: name)
    }

    /// The prefixes whose other keys are deleted, without those inside others.
    private static func prunedPrefixes(
        _ invocation: Invocation,
        _ desired: DesiredState
    ) throws(Failure) -> [Pattern] {
        guard invocation.has("--prune") else {
            guard !invocation.has("--all") else { throw .usage("apply: --all needs --prune") }
            return []
        }
        guard !desired.prefixes.isEmpty else {
            throw .usage(
                "apply: --prune needs a prefix in the file: a name that ends in /, with an object"
            )
        }
        guard desired.prefixes.contains(.everything) else {
            return desired.prefixes.filter { prefix in
                !desired.prefixes.contains { other in
                    other != prefix && prefix.literal.starts(with: other.literal)
                }
            }
        }
        guard invocation.has("--all") else {
            throw .usage(
                "apply: '/' means everything; --prune --all deletes every key that the file lacks"
            )
        }
        return [.everything]
    }
}
