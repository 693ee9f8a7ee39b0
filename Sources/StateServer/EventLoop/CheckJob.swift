import StateEngine

/// Reads everything that is stored, with its checksums, and throws it away.
///
/// Before it is submitted and after it is finished it belongs to the loop thread, else to the history thread: the proof of
/// `@unchecked Sendable`.
final class CheckJob: HistoryJob, @unchecked Sendable {
    let control = JobControl()
    let byteCount = 0
    private var place = HistoryPlace(revision: 0, ordinal: 0)
    private let through: Int64

    /// - Parameter revision: Up to here; what is written meanwhile is for the next time.
    init(through revision: Int64) { through = revision }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        var budget = HistoryBudget(byteCount: 1 << 20)
        return try history.snapshot { _ in
            try history.forEachChange(after: place, through: through) { change in
                place = change.place
                return budget.take(byteCount: change.key.count + (change.value?.count ?? 0))
            }
        }
    }

    func finish(_ failure: StateError?, in server: Server) { server.noteCheck(failure) }
}
