import StateClient
import StateModel

extension Statectl {
    /// `delete KEY|PREFIX/…`: prints how many keys were deleted, all in one commit.
    static func delete(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let patterns = try patterns(invocation)
        let client = try invocation.connect()
        let commit = try attempt { () throws(StateError) in
            try client.delete(patterns, isDryRun: invocation.has("--dry-run"))
        }
        output.write(commit, isJSON: invocation.has("--json"))
    }

    private static func patterns(_ invocation: Invocation) throws(Failure) -> [Pattern] {
        let everything = [UInt8(ascii: "/")]
        let narrower = invocation.operands.filter { $0 != everything }
        guard !invocation.has("--all") else {
            guard narrower.isEmpty else {
                throw .usage("--all deletes everything; leave the keys out, or leave out --all")
            }
            return [.everything]
        }
        guard !invocation.operands.isEmpty else {
            throw .usage("'delete' needs a key or a prefix; usage: \(Help.usage(of: .delete))")
        }
        guard narrower.count == invocation.operands.count else {
            throw .usage("'/' is everything; to delete everything say 'statectl delete --all'")
        }
        var patterns: [Pattern] = []
        for text in narrower {
            patterns.append(try attempt { () throws(StateError) in try Pattern(literal: text) })
        }
        return patterns
    }
}
