/// The entries of a pattern at a past revision.
///
/// ```
///            r                  T                                 now
///  ----------|------------------|---------------------------------|----> revisions
///            '- history thread -'------ subscription, memory ------'
/// ```
///
/// A key's first change after `r` names the change that it supersedes, which is the key's version
/// at `r`. The changes up to T, the durable revision at the start, are read from the history: first
/// the keys, then the superseded changes. For later changes, the subscription passes the superseded
/// version before it is freed. A key that neither reports has not changed since: memory has it. So
/// a page costs the matching changes since `r`, and the listing of its entries.
///
/// What is read belongs to the history thread until ``readSlice(of:)`` returns true, and is not
/// changed afterwards; the rest is under the keyspace's lock: the proof of `@unchecked Sendable`.
package final class PastState: @unchecked Sendable {
    /// What is requested.
    package struct Request: Sendable {
        package var patterns: PatternSet
        package var revision: Int64
        /// Only keys after this one.
        package var after: [UInt8]?
        /// The largest number of entries that are read, in key order.
        package var limit = Int.max
        /// Whether values are needed, or only the keys.
        package var needsValues = true
        /// Bytes that may be kept, of keys and values each.
        package var byteLimit: Int
        /// What the reader may see, for the history thread.
        package var view = Visibility.everything
        /// The reader, for the work under the lock.
        package var subject: Subject?
        /// What to do if the limit is too small: the end of a sentence.
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

    /// A key that has changed since the revision.
    package struct Changed {
        package let key: [UInt8]
        /// The place of its version in the history; nil if it was absent.
        let place: HistoryPlace?
        /// That of the change that superseded it; nil if the history does not have it yet.
        var successor: HistoryPlace?
        /// Its version at the revision; nil if it was absent, and before it is looked up.
        package var version: PastVersion?
        /// Whether the reader may see the change that superseded it.
        var isShown = true
    }

    // Immutable.
    package let request: Request

    // Only for the history thread.
    private var place: HistoryPlace
    /// The place of the version that the first change after the revision supersedes; nil for none.
    private var superseded: [[UInt8]: Superseded] = [:]
    private struct Superseded {
        var place: HistoryPlace?
        var successor: HistoryPlace
        /// Whether the reader may see the change that superseded it.
        var isShown: Bool
    }
    private var keyByteCount = 0
    private var valueByteCount = 0
    private var isScanned = false
    private var lookedUp = 0
    /// Those up to ``batchEnd`` that are looked up next, in the order that reads each frame of the log once;
    /// the last one is first.
    private var rest: [Int] = []
    private var batchEnd = 0
    private var liveCount = 0
    /// In key order; those up to ``lookedUp`` have their versions.
    private(set) var changed: [Changed] = []
    /// Keys after this one were not looked up, because there are already as many as requested.
    private(set) var lastKey: [UInt8]?

    // Under the lock.
    var subscription: CommitSubscription?
    var changedMeanwhile: [[UInt8]: PastVersion?] = [:]
    package internal(set) var meanwhileByteCount = 0

    /// Begins at the current durable revision.
    package init(_ request: Request, in core: KeyspaceCore) {
        self.request = request
        place = .end(of: request.revision)
        guard request.revision < core.revisions.durable else { return }
        subscription = CommitSubscription(request.patterns, in: core) { [unowned self] in
            note($1, $2)
        }
    }

    /// Whether a key is requested.
    func isMeant(_ key: Bytes) -> Bool {
        guard request.patterns.matches(key) else { return false }
        guard let after = request.after else { return true }
        return after.withUnsafeBytes { $0.precedes(key) }
    }

    func tooBig(_ what: String) -> StateError {
        StateError(
            .tooBig,
            "\(what) since revision \(request.revision) exceed \(request.byteLimit) bytes; "
                + "\(request.advice)"
        )
    }

    // MARK: On the history thread

    /// Bytes kept of what was read.
    package var readByteCount: Int { keyByteCount + valueByteCount }

    /// Reads for at most about 50 ms.
    ///
    /// - Returns: Whether everything was read.
    /// - Throws: ``StateError/Code/compacted``, naming the revision; ``StateError/Code/tooBig``;
    ///   what the history throws.
    package func readSlice(of history: any HistoryReading) throws -> Bool {
        guard isScanned else {
            isScanned = try look(history, scan)
            // Not inside the snapshot, which holds the store's log.
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
        changed = superseded.map { key, old in
            Changed(key: key, place: old.place, successor: old.successor, isShown: old.isShown)
        }
        superseded = [:]
        changed.sort { $0.key.precedes($1.key) }
    }

    /// Finds the keys that have changed, and what their first change supersedes.
    private func scan(
        _ history: any HistoryReading,
        _ budget: inout HistoryBudget
    ) throws -> Bool {
        // Changes after T do no harm: the first change after the revision is the same.
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
        superseded[key] = Superseded(
            place: change.previousPlace,
            successor: change.place,
            isShown: request.view.mayReveal(.read, about: change)
        )
    }

    /// Looks up the versions of those keys, in key order, until there are as many as requested.
    private func lookUp(
        _ history: any HistoryReading,
        _ budget: inout HistoryBudget
    ) throws -> Bool {
        while lookedUp < changed.count, liveCount < request.limit {
            if rest.isEmpty {
                batchEnd = min(changed.count, lookedUp + min(512, request.limit - liveCount))
                rest = order(of: lookedUp..<batchEnd, history).reversed()
            }
            while let index = rest.last {
                // A frame is read once for all that it has: a slice ends before the next one.
                guard !budget.isUsedUp || isRead(index, history) else { return false }
                rest.removeLast()
                try lookUp(index, history)
            }
            lookedUp = batchEnd
        }
        if lookedUp < changed.count, lookedUp > 0 {
            lastKey = changed[lookedUp - 1].key
            changed.removeSubrange(lookedUp...)
        }
        return true
    }

    /// In order of the changes that have their versions, so that each frame of the log is read once.
    private func order(of range: Range<Int>, _ history: any HistoryReading) -> [Int] {
        let first = (history as? any SettledReading)?.firstRevision ?? 0
        func place(_ index: Int) -> HistoryPlace? {
            guard let place = changed[index].place else { return nil }
            return place.revision < first ? changed[index].successor : place
        }
        return range.compactMap { index in place(index).map { (place: $0, index: index) } }
            .sorted { $0.place < $1.place }
            .map(\.index)
    }

    private func isRead(_ index: Int, _ history: any HistoryReading) -> Bool {
        guard let place = changed[index].place else { return true }
        return (history as? any SettledReading)?
            .hasRead(place, supersededBy: changed[index].successor) ?? false
    }

    private func lookUp(_ index: Int, _ history: any HistoryReading) throws {
        guard let place = changed[index].place else { return }
        var version: PastVersion?
        let isThere = try history.withChange(
            at: place,
            supersededBy: changed[index].successor
        ) { change in
            guard request.view.mayReveal(.read, about: change) else { return }
            version = PastVersion(change, needsValue: request.needsValues)
        }
        // A missing change was a delete, which compaction has removed, or a rule did not keep it. A
        // reader who may not see the key must not notice.
        if !isThere, changed[index].isShown {
            try history.requireWhole(changed[index].key, at: request.revision)
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
