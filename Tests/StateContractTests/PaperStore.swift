import StateEngine
import StateTestSupport
import StateTesting

/// A store in memory that outlives its backings, and that may be wrong in one way.
final class PaperStore: Sendable {
    /// A way to be wrong.
    enum Fault: CaseIterable {
        case losesTheLastCommit, splitsTransactions, reorders, forgetsDeletes, forgetsCauses
        case forgetsPredecessors, takesEmptyForDeleted, cutsLargeValues, losesBatches, losesTheRest
        case keepsOnlyWhatIsClosed, takesAnotherEpoch, goesBack, reopensAll, reopensHalf
        case opensTwice, losesOwners

        /// The rule that finds it.
        var rule: BackingContract.Rule {
            switch self {
            case .losesTheLastCommit, .reorders, .forgetsCauses, .forgetsPredecessors, .losesOwners:
                .keepsEveryChange
            case .splitsTransactions, .losesBatches: .keepsWholeBatches
            case .forgetsDeletes: .keepsDeletes
            case .takesEmptyForDeleted, .cutsLargeValues: .keepsTheBounds
            case .losesTheRest: .keepsManyCommits
            case .keepsOnlyWhatIsClosed: .survivesAnUncleanEnd
            case .takesAnotherEpoch, .goesBack: .keepsItsIdentity
            case .reopensAll, .reopensHalf: .reopensExactly
            case .opensTwice: .hasOneOwner
            }
        }

        /// What the violation says of it.
        var finding: String {
            switch self {
            case .losesTheLastCommit, .losesTheRest, .keepsOnlyWhatIsClosed: "without"
            case .reorders, .splitsTransactions, .losesBatches, .forgetsDeletes,
                .takesEmptyForDeleted, .cutsLargeValues:
                ", not "
            case .forgetsCauses: "cause ''"
            case .forgetsPredecessors: "after 0.0, not"
            case .losesOwners: "by 0, version"
            case .takesAnotherEpoch: "the epoch is"
            case .goesBack: "the revision is 0 after"
            case .reopensAll, .reopensHalf: "it passes on"
            case .opensTwice: "the second open: expected LOCKED"
            }
        }
    }

    struct Contents: Sendable {
        var kept: [HeldBacking.Change] = []
        /// What was there when it was closed the last time.
        var closed: [HeldBacking.Change] = []
        /// The last commit that was asked for.
        var revision: Int64 = 0
        var isOpen = false
        var nextIsUnknown = false
    }

    let fault: Fault?
    let epoch = Epoch.random()
    let contents = Observed(Contents())

    init(_ fault: Fault?) { self.fault = fault }

    /// Its contract; after a commit of unknown outcome the commit is there.
    var contract: BackingContract {
        BackingContract(keeping: .history, commitCount: 200) { backing in
            (backing as? PaperBacking)?.store.contents.update { $0.nextIsUnknown = true }
        } open: {
            PaperBacking(self)
        }
    }
}

/// One start of a ``PaperStore``.
final class PaperBacking: Backing {
    let store: PaperStore
    let isPersistent = true
    private let owns = Observed(false)

    init(_ store: PaperStore) { self.store = store }

    deinit { end(isClean: false) }

    func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        let isFree = store.contents.update { contents in
            defer { contents.isOpen = true }
            return !contents.isOpen
        }
        guard isFree || store.fault == .opensTwice else { throw StateError(.locked, "in use") }
        owns.update { $0 = true }
        let found = readBack()
        for change in found { change.withStored { receive($0) } }
        let last = store.fault == .goesBack ? 0 : store.contents.current.revision
        return LoadedStore(
            epoch: store.fault == .takesAnotherEpoch ? .random() : store.epoch,
            revision: last
        )
    }

    private func readBack() -> [HeldBacking.Change] {
        let kept = store.contents.current.kept
        switch store.fault {
        case .losesTheLastCommit: return kept.filter { $0.revision != kept.last?.revision }
        case .reorders: return kept.reversed()
        case .losesTheRest: return Array(kept.prefix(100))
        default: return kept
        }
    }

    func commit(_ batch: borrowing CommitBatch) throws {
        var changes: [HeldBacking.Change] = []
        batch.forEachChange { changes.append(written($0)) }
        switch store.fault {
        case .splitsTransactions where changes.count > 100: changes.removeLast(50)
        case .losesBatches: changes = changes.filter { $0.revision == changes[0].revision }
        case .forgetsDeletes: changes.removeAll { $0.value == nil }
        default: break
        }
        let last = batch.lastRevision
        let isUnknown = store.contents.update { contents in
            contents.kept += changes
            contents.revision = last
            defer { contents.nextIsUnknown = false }
            return contents.nextIsUnknown
        }
        if isUnknown { throw StateError(.readOnly, "outcome unknown: on purpose") }
    }

    private func written(_ change: borrowing StoredChange) -> HeldBacking.Change {
        var change = HeldBacking.Change(change)
        switch store.fault {
        case .forgetsCauses: change.cause = []
        case .forgetsPredecessors: (change.previousRevision, change.previousOrdinal) = (0, 0)
        case .losesOwners: change.owner = 0
        case .takesEmptyForDeleted where change.value == []: change.value = nil
        case .cutsLargeValues: change.value = change.value.map { Array($0.prefix(65_536)) }
        default: break
        }
        return change
    }

    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) -> [String: String?] {
        var beyond = store.contents.current.kept
        if store.fault != .reopensAll { beyond.removeAll { $0.revision <= revision } }
        if store.fault == .reopensHalf { beyond.removeLast(beyond.count / 2) }
        for change in beyond { change.withStored { receive($0) } }
        return [:]
    }

    func close() { end(isClean: true) }

    private func end(isClean: Bool) {
        let owned = owns.update { owns in
            defer { owns = false }
            return owns
        }
        guard owned else { return }
        store.contents.update { contents in
            contents.isOpen = false
            if isClean { contents.closed = contents.kept }
            if store.fault == .keepsOnlyWhatIsClosed { contents.kept = contents.closed }
        }
    }
}
