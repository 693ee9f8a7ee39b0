import StateEngine
import StateWire

/// Collects which keys of a watch with LATEST were changed by the commits after a revision: their values are told as they are
/// now.
///
/// Before it is submitted and after it is finished it belongs to the loop thread, else to the history thread: the proof of
/// `@unchecked Sendable`.
final class CollectMarksJob: HistoryJob, @unchecked Sendable {
    // The loop thread's.
    private let watcher: ConnectionWatcher
    private let connection: Connection

    let through: Int64
    private let position: Int64
    private let patterns: PatternSet
    private let tellsCause: Bool
    private let byteLimit: Int

    private var place: HistoryPlace
    private var byteCount = 0
    private(set) var marks: [[UInt8]: LatestKeys.Mark] = [:]
    /// Commits were compacted, or more keys were changed than may be marked.
    private(set) var isLost = false

    init(
        for watcher: ConnectionWatcher,
        of connection: Connection,
        after position: Int64,
        through revision: Int64
    ) {
        self.watcher = watcher
        self.connection = connection
        self.position = position
        through = revision
        patterns = watcher.watcher.patterns
        tellsCause = watcher.format.options.contains(.by)
        byteLimit = watcher.latestByteLimit
        place = .end(of: position)
    }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try history.snapshot { compacted in
            // Of the commit at which compaction stands, deletes are gone: it has to be read.
            guard compacted <= max(position, place.revision - 1) else {
                isLost = true
                return true
            }
            var budget = HistoryBudget(byteCount: .max)
            let isAtEnd = try history.forEachChange(after: place, through: through) { change in
                place = HistoryPlace(revision: change.revision, ordinal: change.ordinal)
                mark(change)
                return budget.take(byteCount: 0) && byteCount <= byteLimit
            }
            isLost = byteCount > byteLimit
            return isAtEnd || isLost
        }
    }

    private func mark(_ change: borrowing StoredChange) {
        guard patterns.matches(change.key) else { return }
        let mark = LatestKeys.Mark(
            at: HistoryPlace(revision: change.revision, ordinal: change.ordinal),
            cause: tellsCause ? Array(change.cause) : []
        )
        let known = marks.updateValue(mark, forKey: Array(change.key))
        if known == nil { byteCount += change.key.count + mark.byteCount }
    }

    func finish(_ failure: StateError?, in server: Server) {
        server.finishReading(watcher, of: connection) { watcher, core in
            watcher.finish(self, failure, in: core)
        }
    }
}
