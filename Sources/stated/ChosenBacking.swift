import StateEngine
import StateRules
import StateSQLite
import StateServer

/// The backing that the options ask for, and its reports.
struct ChosenBacking {
    let backing: any Backing
    /// Its name in the log: the data directory, or `memory`.
    let name: String
    /// How far its load is; nil if it loads nothing.
    let loading: LoadProgress?
    /// Its fields in STATE.STATUS.
    let report: () -> [(String, String)]
    /// Sets the history limits and the disk reserve from now on.
    let keep: @Sendable (HistoryLimits, _ reserveByteCount: Int) -> Void
    /// After closing: what prevented a clean stop; nil for nothing.
    let loss: () -> String?

    /// Creates the data directory if it is missing; opens nothing yet.
    static func make(_ options: Options, log: Log) throws(StateError) -> ChosenBacking {
        let directory = try DataDirectory.prepare(options)
        return options.isMemory
            ? inMemory(directory, log) : onDisk(directory, options.configuration, log)
    }

    private static func inMemory(_ directory: String, _ log: Log) -> ChosenBacking {
        let memory = MemoryBacking(directory: directory)
        memory.onReservation = log.writeReservation
        return ChosenBacking(
            backing: memory,
            name: "memory",
            loading: nil,
            report: {
                guard let reservation = memory.reservation else { return [] }
                let status = reservation.status
                return [
                    ("reservation_file", reservation.path),
                    ("reserved_revision", "\(status.reserved)"),
                    ("reservation", status.failure?.message ?? "ok"),
                ]
            },
            keep: { _, _ in },
            loss: { nil }
        )
    }

    private static func onDisk(
        _ directory: String,
        _ configuration: Configuration,
        _ log: Log
    ) -> ChosenBacking {
        var options = SQLiteBacking.Options()
        options.history = configuration.history
        options.reserveByteCount = Int64(configuration.limits[.reserveBytes])
        options.settling.spareMemory = { MachineMemory.spareByteCount(besides: $0) }
        let store = SQLiteBacking(directory: directory, options)
        store.reports.finding = { log.write(.warning, .storeFinding, $0) }
        store.reports.failure = { failure in
            log.write(
                failure: failure.map { "settling failed, the log keeps growing: \($0)" },
                .settlingFailed,
                orEnd: "settling succeeds again",
                .settlingRestored
            )
        }
        return ChosenBacking(
            backing: store,
            name: directory,
            loading: store.loading,
            report: { [("data", directory)] + report(of: store) },
            keep: { history, reserveByteCount in
                store.history = history
                store.reserveByteCount = Int64(reserveByteCount)
            },
            loss: { store.lossAtClose }
        )
    }

    private static func report(of store: SQLiteBacking) -> [(String, String)] {
        let status = store.status
        let seconds = (store.pauseMilliseconds + 999) / 1_000
        let pause =
            "a backup is being made; it ends in \(seconds) s if its client has stopped reading"
        let settledAt = status.last?.time ?? 0
        let settlingMicroseconds = (status.last?.nanoseconds ?? 0) / 1_000
        var fields: [(String, String)] = [
            ("database_bytes", "\(status.databaseByteCount)"),
            ("free_bytes", "\(status.freeByteCount)"),
            ("log_bytes", "\(status.logByteCount)"),
            ("log_segments", "\(status.segments.count)"),
            ("unsettled_bytes", "\(status.unsettledByteCount)"),
            ("settled_revision", "\(status.settledRevision)"),
            ("settled_at", "\(settledAt)"),
            ("settle_microseconds", "\(settlingMicroseconds)"),
            ("segments_reused", "\(status.segments.reusedCount)"),
            ("segments_dropped", "\(status.segments.droppedCount)"),
            ("segments_replaced", "\(status.segments.replacedCount)"),
            ("segments_rewritten", "\(status.segments.rewrittenCount)"),
            ("carried_bytes", "\(status.carriedByteCount)"),
            ("settling", status.failure ?? "ok"),
            ("store", store.fileFinding ?? "ok"),
        ]
        if seconds > 0 { fields.append(("compaction_pause", pause)) }
        return fields
    }
}
