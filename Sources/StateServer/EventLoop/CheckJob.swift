import StateEngine

/// Reads the rows and the complete log of the store to verify their checksums.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class CheckJob: HistoryJob, @unchecked Sendable {
    let control = JobControl()
    let byteCount = 0
    /// The key of the last row that was read.
    private var key: [UInt8]?
    private var hasRows = false
    private var place = HistoryPlace(revision: 0, ordinal: 0)
    private let through: Int64

    /// - Parameter revision: The last revision to check; later ones are for the next check.
    init(through revision: Int64) { through = revision }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        var budget = HistoryBudget(byteCount: 1 << 20)
        return try history.snapshot { _ in
            if !hasRows, let rows = history as? any SettledReading {
                hasRows = try rows.forEachRow(after: key) { row in
                    key = Array(row.key)
                    return budget.take(byteCount: row.key.count + (row.value?.count ?? 0))
                }
                return false
            }
            return try history.forEachChange(after: place, through: through) { change in
                place = change.place
                return budget.take(byteCount: change.key.count + (change.value?.count ?? 0))
            }
        }
    }

    func finish(_ failure: StateError?, in server: Server) { server.noteCheck(failure) }
}

/// Damage of the store. Reads are answered from memory, so without this check it would only be
/// noticed at the next start.
extension Server {
    /// Plans the next check.
    func scheduleCheck() {
        guard options.checkMilliseconds > 0, keyspace.history != nil else {
            return timers.set(.check, at: nil)
        }
        timers.set(.check, at: SystemClock.monotonicMilliseconds() + options.checkMilliseconds)
    }

    /// Reads the complete store on the history thread.
    func checkStore() {
        history.submit(CheckJob(through: keyspace.withCore { $0.revisions.durable }))
    }

    /// Handles the end of a check.
    func noteCheck(_ failure: StateError?) {
        scheduleCheck()
        guard let failure else {
            if registry.store.damage != nil {
                options.log(
                    .notice,
                    .storeUndamaged,
                    "the store was read again completely and is not damaged"
                )
            }
            registry.store.damage = nil
            return
        }
        noteDamage(failure)
    }

    /// Reports damage of the store, once in the log and from then on in the status.
    func noteDamage(_ failure: StateError) {
        guard registry.store.damage != failure.message else { return }
        registry.store.damage = failure.message
        options.log(
            .error,
            .storeDamaged,
            "\(failure.message); the values in memory are still served: save them with "
                + "'statectl export', or restore a copy"
        )
    }
}
