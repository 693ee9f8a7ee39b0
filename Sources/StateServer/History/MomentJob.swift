import StateEngine
import StateWire

/// STATE.MOMENT: finds the newest revision that is not later than a wall time.
///
/// The times of commits rise with their revisions, unless somebody sets the clock back. So the newest
/// revisions are looked at one by one, newest first: no time among them hides another. Before them
/// the steps double, and the last one is searched by halves, which relies on rising times there.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class MomentJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    let byteCount = 0
    /// Milliseconds since 1970.
    private let time: Int64
    /// The newest revision that was looked at and is not later.
    private var first: Int64 = 0
    /// No later revision can be the one.
    private var last: Int64
    /// The newest durable revision.
    private let end: Int64
    /// How far to go back, and whether a revision was found that is not later.
    private var (step, isBetween): (Int64, Bool) = (1, false)
    /// How many of the newest revisions are looked at one by one.
    private static let singleCount: Int64 = 1_000

    /// - Parameters:
    ///   - time: Milliseconds since 1970.
    ///   - revision: The newest durable revision.
    ///   - connection: The connection that waits.
    init(at time: Int64, through revision: Int64, for connection: Connection) {
        (self.time, last, end, self.connection) = (time, revision, revision, connection)
        control = JobControl(for: connection)
    }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try history.snapshot { compacted in
            let isCompacted = compacted > 1
            if isCompacted { first = max(first, compacted - 1) }
            let budget = HistoryBudget(byteCount: .max)
            while first < last {
                // A look reads a whole frame of the log.
                guard !budget.isUsedUp else { return false }
                try lookOnce(in: history)
            }
            if isCompacted, first < compacted {
                throw StateError(
                    .compacted,
                    "the history at that time is no longer kept; it begins at revision \(compacted)"
                )
            }
            return true
        }
    }

    /// Looks at revisions from the newest back, until one is not later, then halfway between.
    private func lookOnce(in history: any HistoryReading) throws {
        guard !isBetween else {
            try look(at: first + 1 + (last - first - 1) / 2, in: history)
            return
        }
        isBetween = try look(at: max(first + 1, last - (step - 1)), in: history)
        if !isBetween, end - last >= MomentJob.singleCount { step *= 2 }
    }

    /// Moves `first` or `last` to what the first change from a revision on says.
    ///
    /// - Returns: Whether that change is not later.
    @discardableResult
    private func look(at revision: Int64, in history: any HistoryReading) throws -> Bool {
        var found: (revision: Int64, time: Int64)?
        _ = try history.forEachChange(after: .end(of: revision - 1), through: end) { change in
            found = (change.revision, change.time)
            return false
        }
        guard let found, found.time <= time else {
            last = revision - 1
            return false
        }
        first = found.revision
        return true
    }

    func writeReply(_ context: inout CommandContext) {
        context.output.writeMap(1, context.version)
        context.output.writeField("revision", first)
    }
}
