extension SessionCheck {
    /// No change of a commit comes twice, and none of a commit that is in the state already, or before the beginning.
    package func unique() -> [Violation] { spans.flatMap(unique) }

    private func unique(_ span: SessionSpan) -> [Violation] {
        var violations: [Violation] = []
        var told: [Int64: Set<String>] = [:]
        for (revision, changes) in span.commits {
            // What comes again after FROM is for resumable to say.
            if !span.isResumed, let base = span.base, revision <= base {
                let sentence = "everything up to \(base) had been told, or was not asked for"
                violations.append(violation(.unique, at: revision, sentence))
            }
            let keys = Set(changes.map(\.key))
            if let again = told[revision, default: []].intersection(keys).min() {
                violations.append(violation(.unique, at: revision, "'\(again)' came twice"))
            }
            told[revision, default: []].formUnion(keys)
        }
        return violations
    }
}
