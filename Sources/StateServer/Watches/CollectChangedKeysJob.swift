import StateEngine
import StateWire

/// Collects which keys of a watch with LATEST were changed by the commits after a revision: their values are told as they are
/// now.
///
/// Before it is submitted and after it is finished it belongs to the loop thread, else to the history thread: the proof of
/// `@unchecked Sendable`.
final class CollectChangedKeysJob: HistoryJob, @unchecked Sendable {
    let control: JobControl
    /// What is wanted; watcher and connection are the loop thread's.
    private let missed: MissedCommits
    private let patterns: PatternSet
    private let view: Visibility
    private let includesCause: Bool
    private let byteLimit: Int

    private var place: HistoryPlace
    private(set) var byteCount = 0
    private(set) var marks: [[UInt8]: LatestKeys.Mark] = [:]
    /// Commits were compacted, or more keys were changed than may be marked.
    private(set) var isLost = false

    /// - Parameters:
    ///   - missed: What is wanted.
    ///   - view: What of it may be seen.
    init(_ missed: MissedCommits, _ view: Visibility) {
        self.missed = missed
        control = JobControl(for: missed.connection)
        self.view = view
        patterns = missed.watcher.watcher.patterns
        includesCause = missed.watcher.format.options.contains(.by)
        byteLimit = missed.watcher.latestByteLimit
        place = .end(of: missed.position)
    }

    /// The last commit whose changes are marked.
    var through: Int64 { missed.through }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try history.snapshot { compacted in
            // Of the commit at which compaction stands, deletes are gone: it has to be read.
            guard compacted <= max(missed.position, place.revision - 1) else {
                isLost = true
                return true
            }
            var budget = HistoryBudget(byteCount: .max)
            let isAtEnd = try history.forEachChange(after: place, through: through) { change in
                place = change.place
                mark(change)
                return budget.take(byteCount: 0) && byteCount <= byteLimit
            }
            isLost = byteCount > byteLimit
            return isAtEnd || isLost
        }
    }

    private func mark(_ change: borrowing StoredChange) {
        guard patterns.matches(change.key), view.mayReveal(.watch, about: change) else { return }
        let mark = LatestKeys.Mark(
            at: change.place,
            cause: includesCause ? Array(change.cause) : []
        )
        let known = marks.updateValue(mark, forKey: Array(change.key))
        if known == nil { byteCount += change.key.count + mark.byteCount }
    }

    func finish(_ failure: StateError?, in server: Server) {
        server.finishReading(missed) { missed.watcher.finish(self, failure, in: $0) }
    }
}
