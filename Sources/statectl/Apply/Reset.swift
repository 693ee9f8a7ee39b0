import StateClient
import StateModel

extension Statectl {
    /// `reset KEY|PREFIX/`: deletes what was set, so that defaults count again.
    static func reset(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let pattern = try resetPattern(invocation)
        let client = try invocation.connect()
        let defaults = try attempt(try client.defaults(of: pattern))
        let entries = try attempt(try setEntries(of: pattern, client))
        let changes = KeyChanges(resetting: entries, to: defaults)
        let isDryRun = invocation.has("--dry-run")
        let steps = changes.steps(isDryRun: isDryRun)
        let commit =
            changes.isEmpty ? nil : try attempt(try client.apply(steps, isDryRun: isDryRun))
        try changes.write(
            isDryRun ? nil : commit,
            isDryRun: isDryRun,
            isJSON: invocation.isJSON,
            &output
        )
        guard changes.isEmpty, !invocation.isJSON, pattern.kind == .key else { return }
        if let standard = defaults.first {
            Output.report("'\(pattern)' has its default already, from \(standard.origin)")
        }
    }

    private static func resetPattern(_ invocation: Invocation) throws(Failure) -> Pattern {
        let isAll = invocation.has("--all")
        guard let text = invocation.operands.first, text != "/".bytes else {
            guard isAll else {
                throw .usage("reset: name a key or a prefix; --all resets everything")
            }
            return .everything
        }
        guard !isAll else { throw .usage("reset: give either a key or a prefix, or --all") }
        return try attempt(try Invocation.literal(text))
    }

    /// The entries that somebody has set.
    private static func setEntries(
        of pattern: Pattern,
        _ client: Client
    ) throws(StateError) -> [(key: Key, value: [UInt8], revision: Int64)] {
        var entries: [(key: Key, value: [UInt8], revision: Int64)] = []
        var pages = client.pages(of: pattern)
        while let page = try pages.next() {
            for entry in page {
                entries.append((try Key(bytes: entry.key), entry.value ?? [], entry.revision))
            }
        }
        return entries
    }
}
