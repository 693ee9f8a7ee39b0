/// Where no storage keeps the changes: their revisions stay below a ceiling that is written ahead.
extension KeyspaceCore {
    /// From here on revisions end at the ceiling.
    func bound(by ceiling: RevisionCeiling) {
        self.ceiling = ceiling
        allowRevisions(through: ceiling.status.ceiling)
    }

    /// The next revision is at least the one after this: what was told up to it is nowhere else.
    func skip(to revision: Int64) {
        newestRevision = max(newestRevision, revision)
        guard provisionalRevision <= durableRevision else { return }
        provisionalRevision = newestRevision
        durableRevision = newestRevision
    }

    /// The ceiling was raised; its next half is far enough away to begin the next block there.
    func allowRevisions(through revision: Int64) {
        guard let ceiling else { return }
        revisionCeiling = revision
        raisingRevision = revision - ceiling.block / 2
    }

    /// Whether the ceiling has to be raised; says so once, until it was.
    func takesRaise() -> Bool {
        guard newestRevision >= raisingRevision else { return false }
        raisingRevision = .max
        return true
    }

    /// Why a revision above the ceiling is refused.
    func ceilingReached() -> StateError {
        let path = ceiling?.path ?? "nowhere"
        guard let failure = ceiling?.status.failure else {
            return StateError(
                .readOnly,
                "revision \(openRevision) waits until its ceiling is in \(path): try again"
            )
        }
        return StateError(
            .readOnly,
            "\(failure.message); nothing is written until it can be, and it is tried again by itself"
        )
    }
}
