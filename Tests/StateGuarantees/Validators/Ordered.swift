extension SessionCheck {
    /// Commits, rounds and marks come in the order of their revisions; pieces of a state in that of their keys, but for
    /// those that changed meanwhile; an older value of a key never after a newer one.
    package func ordered() -> [Violation] {
        spans.flatMap { commitOrder($0) + markOrder($0) + pieceOrder($0) }
    }

    private func commitOrder(_ span: SessionSpan) -> [Violation] {
        var violations: [Violation] = []
        var last = Int64.min
        for (revision, _) in span.commits {
            if revision < last {
                violations.append(violation(.ordered, at: revision, "it came after \(last)"))
            }
            last = max(last, revision)
        }
        return violations
    }

    private func markOrder(_ span: SessionSpan) -> [Violation] {
        var violations: [Violation] = []
        var last = span.synced ?? .min
        for event in span.tail {
            guard let mark = event.mark else { continue }
            if mark < last {
                violations.append(violation(.ordered, at: mark, "the mark came after \(last)"))
            }
            last = max(last, mark)
        }
        return violations
    }

    private func pieceOrder(_ span: SessionSpan) -> [Violation] {
        let begin: Int64
        switch span.origin {
        case .live, .resumed: return []
        case .snapshot(let revision), .gap(let revision, _): begin = revision
        }
        var violations: [Violation] = []
        var revisions: [String: Int64] = [:]
        var passed: String?
        for piece in span.pieces {
            if let newer = revisions[piece.key], piece.revision < newer {
                let sentence = "this older value of '\(piece.key)' came after that of \(newer)"
                violations.append(violation(.ordered, at: piece.revision, sentence))
            } else if let passed, piece.key <= passed, piece.revision <= begin {
                let sentence =
                    "the piece '\(piece.key)' came after '\(passed)', and had not changed since \(begin)"
                violations.append(violation(.ordered, at: piece.revision, sentence))
            }
            revisions[piece.key] = piece.revision
            passed = max(passed ?? piece.key, piece.key)
        }
        return violations
    }
}

extension WatchSession.Event {
    /// The revision of a `synced` or a `progress`.
    var mark: Int64? {
        switch self {
        case .synced(let revision), .progress(let revision): revision
        default: nil
        }
    }
}
