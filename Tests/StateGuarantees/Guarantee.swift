/// What etcd promises of a watch (https://etcd.io/docs/v3.5/learning/api_guarantees/#watch-apis), read for ours.
package enum Guarantee: String, CaseIterable, Sendable {
    /// Revisions rise, and never comes an older value of a key after a newer one.
    case ordered
    /// No commit comes twice.
    case unique
    /// None is left out between two that were told.
    case reliable
    /// None is split: all its changes that match and no others, with their values.
    case atomic
    /// What follows a revision that was asked for follows exactly; or a gap, and the state.
    case resumable
    /// At a bookmark everything up to it has been told.
    case bookmarkable
}

/// Where a session breaks a guarantee.
package struct Violation: Hashable, Sendable, CustomStringConvertible {
    package let guarantee: Guarantee
    package let watcher: Int
    /// Which session of the watcher.
    package let session: Int
    /// The commit, or the mark, at which it shows.
    package let revision: Int64
    package let sentence: String

    package var description: String {
        "\(guarantee.rawValue): watcher \(watcher), session \(session), revision \(revision): \(sentence)"
    }
}

/// Holds a recorded session against what was committed; each of its six functions is one guarantee.
///
/// The functions are independent: what breaks one guarantee only is found by one only. They cost O(*n*) in what was told
/// and in what was committed meanwhile.
package struct SessionCheck {
    /// So many of one guarantee in one session are told; the rest would say the same.
    static let violationLimit = 4

    package let session: WatchSession
    package let record: CommitRecord
    let spans: [SessionSpan]

    /// Prepares the check; `record` has all that was committed before the session ended.
    package init(_ session: WatchSession, against record: CommitRecord) {
        self.session = session
        self.record = record
        spans = SessionSpan.spans(of: session)
    }

    /// Where the session breaks any of the six.
    package func violations() -> [Violation] {
        Guarantee.allCases.flatMap { violations(of: $0).prefix(Self.violationLimit) }
    }

    /// Where the session breaks one of them.
    package func violations(of guarantee: Guarantee) -> [Violation] {
        switch guarantee {
        case .ordered: ordered()
        case .unique: unique()
        case .reliable: reliable()
        case .atomic: atomic()
        case .resumable: resumable()
        case .bookmarkable: bookmarkable()
        }
    }

    var patterns: [WatchPattern] { session.request.patterns }
    var isLatest: Bool { session.request.isLatest }

    /// The commits above `first`, up to `last`, of which the session has to be told.
    func wanted(after first: Int64, through last: Int64) -> [RecordedCommit] {
        record.commits(after: first, through: last).filter { commit in
            commit.changes.contains { patterns.match($0.key) }
        }
    }

    func violation(_ guarantee: Guarantee, at revision: Int64, _ sentence: String) -> Violation {
        Violation(
            guarantee: guarantee,
            watcher: session.watcher,
            session: session.number,
            revision: revision,
            sentence: sentence
        )
    }
}
