extension SessionCheck {
    /// Every commit that is told was made, and has all its changes that match and no others, with their values; so has
    /// every piece of a state.
    ///
    /// With `LATEST` a commit's changes are those that no later one has replaced.
    package func atomic() -> [Violation] {
        spans.flatMap { span in
            span.commits.flatMap { atomic($0.revision, $0.changes) }
                + span.pieces.compactMap(atomic) + misplaced(span)
        }
    }

    private func atomic(_ revision: Int64, _ changes: [WatchSession.Change]) -> [Violation] {
        guard let commit = record.commit(at: revision) else {
            return [violation(.atomic, at: revision, "nobody committed it: \(changes)")]
        }
        let made = Dictionary(uniqueKeysWithValues: commit.changes.map { ($0.key, $0) })
        var told: Set<String> = []
        var violations: [Violation] = []
        func report(_ sentence: String) {
            violations.append(violation(.atomic, at: revision, sentence))
        }
        for change in changes {
            if !told.insert(change.key).inserted { report("it has '\(change.key)' twice") }
            guard patterns.match(change.key), let made = made[change.key] else {
                report("'\(change.key)' does not belong to it")
                continue
            }
            if change.value != made.value {
                report("'\(change.key)' was \(shown(made.value)), told \(shown(change.value))")
            }
            if let sentence = wrongPrevious(change, revision) { report(sentence) }
        }
        guard !isLatest else { return violations }
        for change in commit.changes where patterns.match(change.key) && !told.contains(change.key)
        {
            report("'\(change.key)' is missing")
        }
        return violations
    }

    /// What a change replaced, in rounds, is not for the record to say: the watcher may never have been told of it.
    private func wrongPrevious(_ change: WatchSession.Change, _ revision: Int64) -> String? {
        guard session.request.includesPrevious, !isLatest else { return nil }
        let old = record.entry(of: change.key, at: revision - 1)?.value
        guard change.previous != (old.map { .value($0) } ?? .absent) else { return nil }
        return "'\(change.key)' was \(shown(old)) before, told \(change.previous)"
    }

    private func atomic(_ piece: WatchSession.Piece) -> Violation? {
        let commit = record.commit(at: piece.revision)
        let made = commit?.changes.first { $0.key == piece.key }
        let isRight = made != nil && made?.value == piece.value && patterns.match(piece.key)
        guard !isRight else { return nil }
        let sentence =
            "the piece '\(piece.key)' \(shown(piece.value)) is nothing that was committed"
        return violation(.atomic, at: piece.revision, sentence)
    }

    private func misplaced(_ span: SessionSpan) -> [Violation] {
        let early = span.early.map { violation(.atomic, at: $0.revision, "\($0) within a state") }
        let late = span.tail.compactMap { event -> Violation? in
            guard case .pieces = event else { return nil }
            return violation(.atomic, at: event.revision, "pieces of a state that did not begin")
        }
        return early + late
    }

    private func shown(_ value: String?) -> String { value.map { "'\($0)'" } ?? "deleted" }
}

extension WatchSession.Event {
    /// The revision that it names; 0 for pieces.
    var revision: Int64 {
        switch self {
        case .change(let revision, _), .synced(let revision), .gap(let revision, _),
            .progress(let revision):
            revision
        case .pieces: 0
        }
    }
}
