import StateClient
import StateModel

extension Statectl {
    /// `revert PATTERN --to REV`: prints how many keys changed, all in one commit.
    static func revert(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let pattern = try revertedPattern(invocation)
        guard let moment = try invocation.moment("--to"), moment != .now else {
            throw .usage("revert: --to REV is missing; usage: \(try Verb.named("revert").usage)")
        }
        let client = try invocation.connect()
        let revision = try attempt(try moment.revision(client)) ?? 0
        guard !invocation.has("--dry-run") else {
            let differences = try attempt(try Differences(reverting: pattern, to: revision, client))
            return try differences.write(isJSON: invocation.isJSON, &output)
        }
        let commit = try attempt(try client.revert(pattern, to: revision))
        output.write(commit, isJSON: invocation.isJSON)
    }

    private static func revertedPattern(_ invocation: Invocation) throws(Failure) -> Pattern {
        let everything = [UInt8(ascii: "/")]
        guard let text = invocation.operands.first, text != everything else {
            if invocation.has("--all") { return .everything }
            guard invocation.operands.isEmpty else {
                throw .usage(
                    "revert: '/' means everything; use 'statectl revert --all --to REV' for that"
                )
            }
            throw .usage("revert: PATTERN is missing; usage: \(try Verb.named("revert").usage)")
        }
        guard !invocation.has("--all") else {
            throw .usage("revert: give either PATTERN or --all, which reverts everything")
        }
        return try Invocation.pattern(text)
    }
}
