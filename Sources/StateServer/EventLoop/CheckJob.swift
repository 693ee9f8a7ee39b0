import StateEngine

/// Reads the complete store to verify its checksums.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class CheckJob: HistoryJob, @unchecked Sendable {
    let control = JobControl()
    let byteCount = 0
    private var place = HistoryPlace(revision: 0, ordinal: 0)
    private let through: Int64

    /// - Parameter revision: The last revision to check; later ones are for the next check.
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
