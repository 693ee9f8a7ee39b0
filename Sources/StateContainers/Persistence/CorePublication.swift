import StateEngine

/// The part of a commit, or of a reported state, that concerns one key: decoded, and ready to be
/// published with the others.
///
/// One thread uses it: the proof of `@unchecked Sendable`.
final class CorePublication<Value: Codable & Sendable>: Publication, @unchecked Sendable {
    private let core: PersistentCore<Value>
    private let change: KeyspaceChange
    private let revision: Revision
    /// Nil for a state: the key's present value, whoever wrote it.
    private let cause: Cause?
    private let depth: Int64
    /// Whether a writer of this process waits for the commit; that writer then delivers it.
    private let isAwaited: Bool
    private let decoded: Result<StateCodec<Value>.Stored, StateError>
    /// The values that it replaces, retained until the locks of all are released.
    private var replaced: [Value] = []

    init(
        core: PersistentCore<Value>,
        change: KeyspaceChange,
        revision: Revision,
        cause: Cause?,
        depth: Int64,
        isAwaited: Bool,
        decoded: Result<StateCodec<Value>.Stored, StateError>
    ) {
        self.core = core
        self.change = change
        self.revision = revision
        self.cause = cause
        self.depth = depth
        self.isAwaited = isAwaited
        self.decoded = decoded
    }

    var key: Key { core.key }

    func publish(_ others: () -> Void) {
        core.published.withLock { published in
            core.head.withLock { head in
                if core.ownsObjects { replaced = [published.value, head.stored.value] }
                take(&published, &head)
            }
            others()
        }
    }

    func deliver() {
        switch decoded {
        case .failure(let error): core.note(error)
        // A value that can be read again ends the failure.
        case .success: if core.failure.value != nil { core.failure.modify(nil) }
        }
        core.loading.putFirst(.success(revision.number))
        if !isAwaited { core.deliverLater() }
        // Not this object, which retains the core: a container that is gone must not keep its key.
        core.releaseLater((replaced, decoded))
    }

    private typealias Published = StateCore<Value>.Published
    private typealias Head = PersistentCore<Value>.Head

    private func take(_ published: inout Published, _ head: inout Head) {
        let isFirst = !head.isLoaded
        head.isLoaded = true
        head.awaySince = nil
        let newRevision = self.newRevision(head.stored)
        guard isFirst || isNews(newRevision, head.stored) else { return }
        head.stored.revision = newRevision
        head.stored.entryRevision = change.value == nil ? 0 : change.revision
        switch decoded {
        case .failure(let error):
            head.stored.unreadable = error
        case .success(let (value, version)):
            head.stored.unreadable = nil
            head.stored.value = value
            head.stored.origin =
                change.value == nil ? .defaulted : version.map { .migrated(from: $0) } ?? .stored
            let isOtherEpoch = newRevision.epoch != published.epoch
            // Changes whose writers did not wait were already published.
            guard isFirst || isOtherEpoch || newRevision.number > head.early else { return }
            // A change that was reverted and stored after all has an older number than the visible
            // one.
            let isOlder = published.revision.isNewer(than: newRevision)
            let shown = isOlder ? published.revision : newRevision
            published.publish(
                value,
                shown,
                skipped: isFirst ? 0 : skippedCount(before: shown, after: published.revision),
                cause: cause ?? change.cause ?? .unknown,
                depth: depth,
                merges: true
            )
        }
    }

    /// How many revisions a state skips.
    private func skippedCount(before new: Revision, after old: Revision) -> Int {
        guard cause == nil, new.epoch == old.epoch else { return 0 }
        return Int(max(0, new.number - old.number - 1))
    }

    /// The revision at which the key got this value.
    private func newRevision(_ stored: PersistentCore<Value>.Stored) -> Revision {
        guard cause == nil else { return revision }
        if change.value != nil { return Revision(epoch: revision.epoch, number: change.revision) }
        // The revision that deleted an absent key is unknown.
        let wasAbsent = stored.entryRevision == 0 && stored.revision.epoch == revision.epoch
        return wasAbsent ? stored.revision : revision
    }

    private func isNews(
        _ newRevision: Revision,
        _ stored: PersistentCore<Value>.Stored
    ) -> Bool {
        newRevision.epoch != stored.revision.epoch || newRevision.number > stored.revision.number
    }
}
