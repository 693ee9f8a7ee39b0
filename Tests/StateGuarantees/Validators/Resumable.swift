extension SessionCheck {
    /// After `FROM r` comes what is after r, from the first commit on; or a gap for which there is a reason, and then the
    /// state, whose pieces add up to what it was at `synced`.
    package func resumable() -> [Violation] {
        var violations: [Violation] = []
        for (index, span) in spans.enumerated() {
            switch span.origin {
            case .live, .snapshot: break
            case .resumed(let revision): violations += resumable(span, from: revision)
            case .gap(let revision, let compacted):
                if let sentence = missingReason(forGapAfter: spans[..<index], compacted) {
                    violations.append(violation(.resumable, at: revision, sentence))
                }
                if let synced = span.synced, let difference = snapshotDifference(span, synced) {
                    violations.append(violation(.resumable, at: synced, difference))
                }
            }
        }
        return violations
    }

    private func resumable(_ span: SessionSpan, from revision: Int64) -> [Violation] {
        let commits = span.commits
        if let sentence = reasonForGap(from: revision), let first = span.tail.first {
            return [violation(.resumable, at: first.revision, "no gap, though \(sentence)")]
        }
        var violations = commits.filter { $0.revision <= revision }
            .map { violation(.resumable, at: $0.revision, "it is not after \(revision)") }
        if let first = commits.map(\.revision).min(), !isLatest {
            violations += wanted(after: revision, through: first - 1).map {
                violation(
                    .resumable,
                    at: $0.revision,
                    "it is after \(revision); \(first) came first"
                )
            }
        }
        return violations
    }

    /// Why a watch cannot go on after a revision, whatever the history has.
    private func reasonForGap(from revision: Int64) -> String? {
        guard case .from(_, let epoch) = session.request.start, let reply = session.reply else {
            return nil
        }
        if let epoch, epoch != reply.epoch { return "the epoch is \(reply.epoch), not \(epoch)" }
        if revision > reply.revision { return "\(revision) is above \(reply.revision)" }
        return nil
    }

    /// Why there should have been no gap after these spans; nil where there is a reason for it.
    private func missingReason(
        forGapAfter spans: ArraySlice<SessionSpan>,
        _ compacted: Int64
    ) -> String? {
        guard let before = spans.last else { return nil }
        if spans.count == 1, before.tail.isEmpty, case .resumed(let revision) = before.origin,
            reasonForGap(from: revision) != nil
        {
            return nil
        }
        let told = before.tail.map(\.revision).max() ?? 0
        // A state that its watcher does not read is begun again, rather than kept for it.
        guard let base = before.base else { return nil }
        let position = max(base, told)
        guard position >= compacted else { return nil }
        return "a gap, though the history reaches back to \(compacted) and \(position) was told"
    }

    /// Where the pieces of a state do not add up to it.
    func snapshotDifference(_ span: SessionSpan, _ revision: Int64) -> String? {
        let state = record.state(at: revision, matching: patterns)
        return StateComparison(state, told: span.pieces).difference
    }
}
