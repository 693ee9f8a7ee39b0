import StateEngine
import StateWire

/// STATE.MOMENT: finds the newest revision at a wall time, by halves.
///
/// The times of commits rise with their revisions, unless somebody sets the clock back: then the
/// revision that is found is one of those at that time.
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

    /// - Parameters:
    ///   - time: Milliseconds since 1970.
    ///   - revision: The newest durable revision.
    ///   - connection: The connection that waits.
    init(at time: Int64, through revision: Int64, for connection: Connection) {
        (self.time, last, self.connection) = (time, revision, connection)
        control = JobControl(for: connection)
    }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try history.snapshot { compacted in
            let isCompacted = compacted > 1
            if isCompacted { first = max(first, compacted - 1) }
            let end = last
            while first < last {
                let middle = first + (last - first + 1) / 2
                var found: (revision: Int64, time: Int64)?
                _ = try history.forEachChange(after: .end(of: middle - 1), through: end) { change in
                    found = (change.revision, change.time)
                    return false
                }
                if let found, found.time <= time {
                    first = found.revision
                } else {
                    last = middle - 1
                }
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

    func writeReply(_ context: inout CommandContext) {
        context.output.writeMap(1, context.version)
        context.output.writeField("revision", first)
    }
}
