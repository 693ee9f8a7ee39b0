import StateClient
import StateModel

extension Statectl {
    /// `delete KEY|PREFIX/…`: prints how many keys were deleted, all in one commit.
    static func delete(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let patterns = try patterns(invocation)
        let client = try invocation.connect()
        let isDryRun = invocation.has("--dry-run")
        let commit = try attempt(try client.delete(patterns, isDryRun: isDryRun))
        output.write(commit, isJSON: invocation.isJSON)
        let glob = invocation.operands.first { $0.contains { "*?".utf8.contains($0) } }
        if commit.count == 0, let glob {
            let shown = String(decoding: glob, as: UTF8.self)
            Output.report("no key is named '\(shown)': delete takes keys and prefixes, not globs")
        }
    }

    private static func patterns(_ invocation: Invocation) throws(Failure) -> [Pattern] {
        let everything = [UInt8(ascii: "/")]
        let narrower = invocation.operands.filter { $0 != everything }
        guard !invocation.has("--all") else {
            guard narrower.isEmpty else {
                throw .usage("delete: give either keys or --all, which deletes everything")
            }
            return [.everything]
        }
        guard !invocation.operands.isEmpty else {
            throw .usage(
                "delete: KEY or PREFIX/ is missing; usage: \(try Verb.named("delete").usage)"
            )
        }
        guard narrower.count == invocation.operands.count else {
            throw .usage("delete: '/' means everything; use 'statectl delete --all' for that")
        }
        return try narrower.map { text throws(Failure) in
            try attempt(try Pattern(literal: text))
        }
    }
}
