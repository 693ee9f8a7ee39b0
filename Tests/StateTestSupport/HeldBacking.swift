package import StateEngine

/// A backing whose commits wait until the test lets them go or makes them fail, and that keeps in memory what was committed.
///
/// The verdicts count: each ``release(_:)`` and ``fail(_:)`` is for one commit, the one that waits or the next. A commit that waits
/// for a minute fails, so that a test that forgot it ends.
package final class HeldBacking: Backing {
    /// A change with bytes of its own.
    package typealias Change = BuiltBatch.Change

    private struct Verdict {
        var error: StateError?
        /// Whether what was committed is there, whatever is said of it.
        var isKept: Bool
    }

    private struct State {
        var kept: [Change]
        var metadata: [MetadataEntry] = []
        /// The commit that waits.
        var waiting: [Change]?
        /// What becomes of the next commits.
        var verdicts: [Verdict] = []
        /// What the next attempts to open it anew fail with.
        var reopenErrors: [StateError] = []
        /// How often it was opened anew, or this was tried.
        var reopenCount = 0
        var isReopeningHeld = false
        var isHeld: Bool
        var attemptCount = 0
        /// How often something else was asked while a commit waited: whose turn it was not.
        var overlapCount = 0
        var fileContainers: String?
        var isClosed = false
    }

    private let state: Observed<State>
    package let epoch: Epoch
    package let isPersistent = true
    package var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.files = self
        capabilities.keepsMetadata = true
        return capabilities
    }

    /// Makes a store that holds `kept`.
    ///
    /// - Parameters:
    ///   - isHeld: Whether commits wait; where not, they succeed at once until ``hold()``.
    ///   - kept: What `load` finds.
    ///   - epoch: The identity of the store.
    package init(isHeld: Bool = true, kept: [Change] = [], epoch: Epoch = .random()) {
        state = Observed(State(kept: kept, isHeld: isHeld))
        self.epoch = epoch
    }

    // MARK: The test's side

    /// Lets one commit, or so many, succeed.
    package func release(_ count: Int = 1) {
        state.update {
            $0.verdicts += Array(repeating: Verdict(error: nil, isKept: true), count: count)
        }
    }

    /// Makes one commit fail; nothing of it is kept, unless `isKept`.
    package func fail(_ error: StateError, isKept: Bool = false) {
        state.update { $0.verdicts.append(Verdict(error: error, isKept: isKept)) }
    }

    /// Makes the next attempt to open the store anew fail.
    package func failReopening(_ error: StateError) {
        state.update { $0.reopenErrors.append(error) }
    }

    /// From now on it waits to be opened anew, until ``openAgain()``.
    package func holdReopening() { state.update { $0.isReopeningHeld = true } }

    package func openAgain() { state.update { $0.isReopeningHeld = false } }

    /// How often it was opened anew, or this was tried.
    package var reopenCount: Int { state.current.reopenCount }

    /// From now on commits wait.
    package func hold() { state.update { $0.isHeld = true } }

    /// From now on commits succeed at once, the one that waits too.
    package func open() { state.update { $0.isHeld = false } }

    /// Waits until a commit waits and has no verdict.
    ///
    /// - Returns: Its changes; nil where none came in time.
    package func held() -> [Change]? {
        state.take { $0.verdicts.isEmpty ? $0.waiting : nil }
    }

    /// The changes of the commit that waits now.
    package var waiting: [Change]? { state.current.waiting }

    /// What was committed, in order.
    package var kept: [Change] { state.current.kept }

    /// The notes that were committed.
    package var metadata: [String: String] {
        state.current.metadata.reduce(into: [:]) { $0[$1.name] = $1.text }
    }

    /// How many commits were asked for.
    package var attemptCount: Int { state.current.attemptCount }

    /// How often it was used by two at once.
    package var overlapCount: Int { state.current.overlapCount }

    package var isClosed: Bool { state.current.isClosed }

    // MARK: Backing

    package func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore {
        let kept = state.current.kept
        for change in kept { change.withStored { receive($0) } }
        var loaded = LoadedStore(epoch: epoch, revision: kept.last?.revision ?? 0)
        loaded.metadata = metadata
        return loaded
    }

    package func commit(_ batch: borrowing CommitBatch) throws {
        var changes: [Change] = []
        batch.forEachChange { changes.append(Change($0)) }
        let metadata = batch.metadata
        state.update { state in
            state.attemptCount += 1
            state.waiting = changes
        }
        let verdict = state.take(seconds: 60) { state -> Verdict? in
            guard !state.verdicts.isEmpty || !state.isHeld else { return nil }
            let verdict =
                state.verdicts.isEmpty
                ? Verdict(error: nil, isKept: true) : state.verdicts.removeFirst()
            if verdict.isKept {
                state.kept += changes
                state.metadata += metadata
            }
            state.waiting = nil
            return verdict
        }
        guard let verdict else {
            throw StateError(.readOnly, "outcome unknown: held for a minute")
        }
        if let error = verdict.error { throw error }
    }

    package func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        state.update { $0.reopenCount += 1 }
        let error = state.take(seconds: 60) { state -> StateError?? in
            guard !state.isReopeningHeld else { return nil }
            return .some(state.reopenErrors.isEmpty ? nil : state.reopenErrors.removeFirst())
        }
        if let error = error ?? StateError(.storage, "held for a minute") { throw error }
        for change in kept where change.revision > revision { change.withStored { receive($0) } }
        var changed: [String: String?] = [:]
        for entry in state.current.metadata where entry.revision > revision {
            changed[entry.name] = .some(entry.text)
        }
        return changed
    }

    package func close() { state.update { $0.isClosed = true } }
}

extension HeldBacking: PendingFileListBacking {
    package func takePendingFileList() -> String? { nil }

    package func fileContainers() -> String? {
        state.update { state in
            if state.waiting != nil { state.overlapCount += 1 }
        }
        return state.current.fileContainers
    }

    package func setFileContainers(_ text: String?) {
        state.update { state in
            if state.waiting != nil { state.overlapCount += 1 }
            state.fileContainers = text
        }
    }

    package func setPendingFileList(_ text: String?) {}
}

extension BuiltBatch.Change {
    /// Calls `body` with the change as a backing hands it over.
    package func withStored(_ body: (borrowing StoredChange) -> Void) {
        key.withUnsafeBytes { key in
            cause.withUnsafeBytes { cause in
                (value ?? []).withUnsafeBytes { bytes in
                    body(
                        StoredChange(
                            revision: revision,
                            ordinal: ordinal,
                            key: key,
                            value: value == nil ? nil : bytes,
                            created: created,
                            owner: owner,
                            version: version,
                            time: time,
                            expires: expires,
                            cause: cause,
                            previousRevision: previousRevision,
                            previousOrdinal: previousOrdinal
                        )
                    )
                }
            }
        }
    }
}
