import StateEngine
import StateWire

/// Reads the next commits of one watch from the history and writes their pushes: about 64 KiB, or
/// what it can read in 50 ms, and at least one commit.
///
/// A larger commit takes several slices: committed changes do not change, and each slice checks
/// that they are not compacted. The commit is pushed as a whole.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class CatchUpJob: HistoryJob, @unchecked Sendable {
    let control: JobControl
    // The request; only the loop thread uses its watcher and connection.
    private let missed: MissedCommits
    private let format: WatchFormat
    private let patterns: PatternSet
    private let view: Visibility

    // The result.
    /// The pushes of the commits up to `reached`.
    private(set) var output = ByteBuffer()
    private(set) var reached: Int64 = 0
    /// The last pushed commit; nil if there is none.
    private(set) var deliveredRevision: Int64?
    /// Whether the commits were compacted.
    private(set) var isCompacted = false

    // Commits that are read and not written yet.
    private var place: HistoryPlace
    private var wholeThrough: Int64
    private var isRead = false
    private var unwritten = CommitRows()
    private var written = Written()

    /// How much of them is written.
    private struct Written {
        var byteCount = 0
        var replacedCount = 0
        var commitCount = 0
        /// Whether the header of the next commit is written.
        var hasHead = false
    }

    /// About how many bytes one job pushes.
    ///
    /// On a busy machine a job waits for a processor while writers go on: with 16 KiB, some 200
    /// commits, a watch fell behind 10,000 SETs a second and did not reach the present.
    private static let byteCount = 64 << 10
    /// The cost of looking up a replaced value, in bytes: about 120 are looked up at once.
    private static let lookUpByteCount = 512

    /// - Parameters:
    ///   - missed: The commits to read.
    ///   - view: What the client may see.
    init(_ missed: MissedCommits, _ view: Visibility) {
        self.missed = missed
        control = JobControl(for: missed.connection)
        self.view = view
        format = missed.watcher.format
        patterns = missed.watcher.watcher.patterns
        place = .end(of: missed.position)
        wholeThrough = missed.position
    }

    // MARK: On the history thread

    var byteCount: Int { output.footprint + unwritten.rows.footprint }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        let time = HistoryBudget(byteCount: .max)
        return try history.snapshot { compacted in
            guard try history.oldestRevision(of: patterns, compacted) <= missed.position else {
                isCompacted = true
                return true
            }
            if !isRead { isRead = try read(history) }
            return isRead ? try write(history, time) : false
        }
    }

    /// Continues to read at `place`.
    ///
    /// - Returns: Whether there are complete commits, or nothing more.
    private func read(_ history: any HistoryReading) throws -> Bool {
        var budget = HistoryBudget(byteCount: CatchUpJob.byteCount)
        let isAtEnd = try history.forEachChange(after: place, through: missed.through) { change in
            if change.revision != place.revision { endCommit() }
            place = change.place
            return budget.take(byteCount: take(change))
        }
        if isAtEnd {
            endCommit()
            reached = missed.through
            return true
        }
        guard wholeThrough > missed.position else { return false }
        // The read part of the next commit is read again later.
        unwritten.dropOpen()
        reached = wholeThrough
        return true
    }

    private func endCommit() {
        wholeThrough = place.revision
        unwritten.endCommit(at: place.revision)
    }

    /// Writes the row of a change if the patterns match its key.
    ///
    /// - Returns: Its cost in bytes.
    private func take(_ change: borrowing StoredChange) -> Int {
        guard patterns.matches(change.key), view.mayReveal(.watch, about: change) else { return 0 }
        let cause = format.options.contains(.by) ? change.cause : nil
        let (key, value) = (change.key, change.value)
        let count = unwritten.add(cause) { format.writeChange(key, value, to: &$0) }
        guard format.options.contains(.previous) else { return count }
        unwritten.addReplaced(at: change.previousPlace, by: change.place)
        return count + CatchUpJob.lookUpByteCount
    }

    /// Writes the pushes of the read commits.
    ///
    /// - Returns: Whether all of them are written.
    private func write(_ history: any HistoryReading, _ time: HistoryBudget) throws -> Bool {
        while written.commitCount < unwritten.commits.count {
            let commit = unwritten.commits[written.commitCount]
            if !written.hasHead {
                format.writeHead(commit.revision, count: commit.count, to: &output)
                written.hasHead = true
            }
            while written.replacedCount < commit.replacedEnd {
                try write(unwritten.replaced[written.replacedCount], history)
                written.replacedCount += 1
                if time.isUsedUp { return false }
            }
            writeRows(to: commit.rowsEnd)
            if format.options.contains(.by) { output.writeBulk(commit.cause) }
            deliveredRevision = commit.revision
            written.commitCount += 1
            written.hasHead = false
        }
        unwritten.dropRows()
        return true
    }

    private func write(_ row: CommitRows.Replaced, _ history: any HistoryReading) throws {
        writeRows(to: row.rowEnd)
        var isFound = false
        if let place = row.place {
            // If it was compacted, it was a delete: a value that is replaced later is kept.
            isFound = try history.withChange(at: place, supersededBy: row.successor) { change in
                format.writeValue(
                    view.mayReveal(.watch, about: change) ? change.value : nil,
                    to: &output
                )
            }
        }
        if !isFound { format.writeValue(nil, to: &output) }
    }

    private func writeRows(to end: Int) {
        output.append(unwritten.rows.bytes.slice(written.byteCount, end))
        written.byteCount = end
    }

    // MARK: On the loop thread

    func finish(_ failure: StateError?, in server: Server) {
        server.finishReading(missed) { missed.watcher.finish(self, failure, in: $0) }
    }
}
