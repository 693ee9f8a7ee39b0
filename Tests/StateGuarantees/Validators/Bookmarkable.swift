extension SessionCheck {
    /// At `progress r` and `synced r` everything up to r has been told, and nothing up to r comes later.
    ///
    /// With `LATEST`: what was told adds up to exactly the state at r.
    package func bookmarkable() -> [Violation] {
        spans.flatMap { span -> [Violation] in
            var violations: [Violation] = []
            if case .snapshot = span.origin, let synced = span.synced,
                let difference = snapshotDifference(span, synced)
            {
                violations.append(violation(.bookmarkable, at: synced, difference))
            }
            return violations + (isLatest ? roundMarks(span) : commitMarks(span))
        }
    }

    private func commitMarks(_ span: SessionSpan) -> [Violation] {
        guard let base = span.base else { return [] }
        var violations: [Violation] = []
        /// Up to here everything was told or is for another guarantee to miss.
        var told = base
        var marked = Int64.min
        for event in span.tail {
            if case .change(let revision, _) = event {
                if revision <= marked {
                    let sentence = "it came after the mark \(marked)"
                    violations.append(violation(.bookmarkable, at: revision, sentence))
                }
                told = max(told, revision)
            } else if let mark = event.mark {
                if let missing = wanted(after: told, through: mark).first {
                    let sentence = "it had not been told at the mark \(mark)"
                    violations.append(violation(.bookmarkable, at: missing.revision, sentence))
                }
                told = max(told, mark)
                marked = max(marked, mark)
            }
        }
        return violations
    }

    private func roundMarks(_ span: SessionSpan) -> [Violation] {
        guard let base = span.base else { return [] }
        var comparison = StateComparison(record.state(at: base, matching: patterns))
        var violations: [Violation] = []
        var reached = base
        for event in span.tail {
            if case .change(let revision, let changes) = event {
                for change in changes { comparison.tell(change.key, change.value, revision) }
            } else if let mark = event.mark {
                for commit in wanted(after: reached, through: mark) {
                    for change in commit.changes where patterns.match(change.key) {
                        comparison.expect(change.key, change.value, commit.revision)
                    }
                }
                reached = max(reached, mark)
                guard let difference = comparison.difference else { continue }
                violations.append(violation(.bookmarkable, at: mark, difference))
                comparison.forgive()
            }
        }
        return violations
    }
}
