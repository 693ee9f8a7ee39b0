extension SessionCheck {
    /// Between where a span begins and the last commit that was told none is left out; and what was waited for came.
    ///
    /// What `LATEST` may leave out its bookmarks say.
    package func reliable() -> [Violation] {
        var violations = isLatest ? [] : spans.flatMap(reliable)
        if case .silent(let revision) = session.end {
            violations.append(
                violation(.reliable, at: revision, "it did not come, and nothing later")
            )
        }
        return violations
    }

    private func reliable(_ span: SessionSpan) -> [Violation] {
        let told = Set(span.commits.map(\.revision))
        guard let base = span.base, let first = told.min(), let last = told.max() else { return [] }
        // What stands between FROM and the first commit is for resumable to say.
        return wanted(after: span.isResumed ? max(base, first) : base, through: last)
            .filter { !told.contains($0.revision) }
            .map { violation(.reliable, at: $0.revision, "it is left out, \(last) was told") }
    }
}
