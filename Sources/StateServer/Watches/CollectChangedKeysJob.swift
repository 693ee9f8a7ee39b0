import StateEngine
import StateWire

/// Collects the keys of a watch with LATEST that were changed after a revision.
///
/// Their current values are delivered.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class CollectChangedKeysJob: HistoryJob, @unchecked Sendable {
    let control: JobControl
    /// The request; only the loop thread uses its watcher and connection.
    private let missed: MissedCommits
    private let patterns: PatternSet
    private let view: Visibility
    private let includesCause: Bool
    private let byteLimit: Int

    private var place: HistoryPlace
    private(set) var byteCount = 0
    private(set) var pending: [[UInt8]: LatestKeys.Pending] = [:]
    /// Whether commits were compacted, or too many keys were changed.
    private(set) var isLost = false

    /// - Parameters:
    ///   - missed: The commits to read.
    ///   - view: What the client may see.
    init(_ missed: MissedCommits, _ view: Visibility) {
        self.missed = missed
        control = JobControl(for: missed.connection)
        self.view = view
        patterns = missed.watcher.watcher.patterns
        includesCause = missed.watcher.format.options.contains(.by)
        byteLimit = missed.watcher.latestByteLimit
        place = .end(of: missed.position)
    }

    /// The last commit that was collected.
    var through: Int64 { missed.through }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try history.snapshot { compacted in
            // Compaction has removed the deletes of the commit at its revision.
            guard compacted <= max(missed.position, place.revision - 1) else {
                isLost = true
                return true
            }
            var budget = HistoryBudget(byteCount: .max)
            let isAtEnd = try history.forEachChange(after: place, through: through) { change in
                place = change.place
                add(change)
                return budget.take(byteCount: 0) && byteCount <= byteLimit
            }
            isLost = byteCount > byteLimit
            return isAtEnd || isLost
        }
    }

    private func add(_ change: borrowing StoredChange) {
        guard patterns.matches(change.key), view.mayReveal(.watch, about: change) else { return }
        let added = LatestKeys.Pending(
            at: change.place,
            cause: includesCause ? Array(change.cause) : []
        )
        let known = pending.updateValue(added, forKey: Array(change.key))
        if known == nil { byteCount += change.key.count + added.byteCount }
    }

    func finish(_ failure: StateError?, in server: Server) {
        server.finishReading(missed) { missed.watcher.finish(self, failure, in: $0) }
    }
}
