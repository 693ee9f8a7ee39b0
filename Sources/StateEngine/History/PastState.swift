/// What the keys of a pattern were at a revision that has passed.
///
/// ```
///            r                  T                                 now
///  ----------|------------------|---------------------------------|----> revisions
///            '- history thread -'------ subscription, memory ------'
/// ```
///
/// A key's first change after `r` names the change that it supersedes, and that is what the key was at `r`. The changes up to T,
/// what is durable when this is made, are read from the history, key by key then the superseded ones; what the loop is told of
/// meanwhile hands over the version that it supersedes, before it is freed. A key that neither knows of has not changed since:
/// memory has it. So a page costs the changes since `r` that match, and the listing of what it shows.
///
/// What is read belongs to the history thread until ``readSlice(of:)`` says that it is all, and is not changed afterwards; the
/// rest is under the keyspace's lock: the proof of `@unchecked Sendable`.
package final class PastState: @unchecked Sendable {
    /// What of it is asked for.
    package struct Request: Sendable {
        package var patterns: PatternSet
        package var revision: Int64
        /// Only keys after this one.
        package var after: [UInt8]?
        /// How many entries at most are looked at, in key order.
        package var limit = Int.max
        /// Whether values are, or only which keys there were.
        package var needsValues = true
        /// Bytes that may be kept, of keys and values each.
        package var byteLimit: Int
        /// What may be seen of it, for the history thread.
        package var view = Visibility.everything
        /// Who asks, for what is done under the lock.
        package var subject: Subject?
        /// What to do where that is not enough: ends a sentence.
        package var advice: StaticString

        package init(
            _ patterns: PatternSet,
            at revision: Int64,
            byteLimit: Int,
            advice: StaticString
        ) {
            self.patterns = patterns
            self.revision = revision
            self.byteLimit = byteLimit
            self.advice = advice
        }
    }

    /// A key that is not what it was.
    package struct Changed {
        package let key: [UInt8]
        /// Where the history has what it was; nil where it was absent.
        let place: HistoryPlace?
        /// What it was; nil where it was absent, and before it is looked up.
        package var version: PastVersion?
    }

    // Immutable.
    package let request: Request

    // The history thread's.
    private var place: HistoryPlace
    /// What the first change after the revision supersedes; nil for nothing.
    private var superseded: [[UInt8]: HistoryPlace?] = [:]
    private var keyByteCount = 0
    private var valueByteCount = 0
    private var isScanned = false
    private var lookedUp = 0
    private var liveCount = 0
    /// In key order; those up to ``lookedUp`` with what they were.
    private(set) var changed: [Changed] = []
    /// Keys after this one were not looked up, for those up to it are as many as asked for.
    private(set) var lastKey: [UInt8]?

    // Under the lock.
    var subscription: CommitSubscription?
    var changedMeanwhile: [[UInt8]: PastVersion?] = [:]
    package internal(set) var meanwhileByteCount = 0

    /// Begins with what is durable now.
    package init(_ request: Request, in core: KeyspaceCore) {
        self.request = request
        place = .end(of: request.revision)
        guard request.revision < core.revisions.durable else { return }
        subscription = CommitSubscription(request.patterns, in: core) { [unowned self] in
            note($1, $2)
        }
    }

    /// Whether a key is one that is asked for.
    func isMeant(_ key: Bytes) -> Bool {
        guard request.patterns.matches(key) else { return false }
        guard let after = request.after else { return true }
        return after.withUnsafeBytes { $0.precedes(key) }
    }

    func tooBig(_ what: String) -> StateError {
        StateError(
            .tooBig,
            "\(what) since revision \(request.revision) make more than \(request.byteLimit) bytes; "
                + "\(request.advice)"
        )
    }

    // MARK: On the history thread

    /// Bytes that are kept of what was read.
    package var readByteCount: Int { keyByteCount + valueByteCount }

    /// Reads for at most about 50 ms.
    ///
    /// - Returns: Whether that was all.
    /// - Throws: ``StateError/Code/compacted``, naming the revision; ``StateError/Code/tooBig``; what the history throws.
    package func readSlice(of history: any HistoryReading) throws -> Bool {
        guard isScanned else {
            isScanned = try look(history, scan)
            // Not while the store's log has to stay for it.
            if isScanned { sortChanged() }
            return false
        }
        return try look(history, lookUp)
    }

    private func look(
        _ history: any HistoryReading,
        _ body: (any HistoryReading, inout HistoryBudget) throws -> Bool
    ) throws -> Bool {
        try history.snapshot { compacted in
            guard request.revision >= compacted else {
                throw StateError.compacted(request.revision, oldest: compacted)
            }
            var budget = HistoryBudget(byteCount: .max)
            return try body(history, &budget)
        }
    }

    private func sortChanged() {
        changed = superseded.map { Changed(key: $0.key, place: $0.value) }
        superseded = [:]
        changed.sort { $0.key.precedes($1.key) }
    }

    /// Notes which keys have changed, and what their first change supersedes.
    private func scan(
        _ history: any HistoryReading,
        _ budget: inout HistoryBudget
    ) throws -> Bool {
        // Beyond what was durable at first is no harm: the first change after the revision is the same.
        let isWhole = try history.forEachChange(after: place, through: .max) { change in
            place = change.place
            if isMeant(change.key) { noteFirst(change) }
            return budget.take(byteCount: 0) && keyByteCount <= request.byteLimit
        }
        guard keyByteCount <= request.byteLimit else { throw tooBig("the keys that have changed") }
        return isWhole
    }

    private func noteFirst(_ change: borrowing StoredChange) {
        let key = Array(change.key)
        guard superseded[key] == nil else { return }
        keyByteCount += key.count + PastVersion.overheadByteCount
        superseded[key] = .some(change.previousPlace)
    }

    /// Looks up what those keys were, in key order, until there are as many as asked for.
    private func lookUp(
        _ history: any HistoryReading,
        _ budget: inout HistoryBudget
    ) throws -> Bool {
        while lookedUp < changed.count, liveCount < request.limit {
            guard !budget.isUsedUp else { return false }
            let end = min(changed.count, lookedUp + min(512, request.limit - liveCount))
            // In order of place, so that pages of the store are read once.
            let order = (lookedUp..<end).filter { changed[$0].place != nil }
                .sorted { places($0, precedes: $1) }
            for index in order { try lookUp(index, history) }
            lookedUp = end
        }
        if lookedUp < changed.count, lookedUp > 0 {
            lastKey = changed[lookedUp - 1].key
            changed.removeSubrange(lookedUp...)
        }
        return true
    }

    private func places(_ left: Int, precedes right: Int) -> Bool {
        guard let left = changed[left].place, let right = changed[right].place else { return false }
        return left < right
    }

    private func lookUp(_ index: Int, _ history: any HistoryReading) throws {
        guard let place = changed[index].place else { return }
        var version: PastVersion?
        // One that is not there was a delete, which compaction takes away.
        _ = try history.withChange(at: place) { change in
            guard request.view.mayReveal(.read, about: change) else { return }
            version = PastVersion(change, needsValue: request.needsValues)
        }
        guard let version else { return }
        changed[index].version = version
        liveCount += 1
        valueByteCount += version.value.count
        guard valueByteCount <= request.byteLimit else {
            throw tooBig("the values that have changed")
        }
    }
}
