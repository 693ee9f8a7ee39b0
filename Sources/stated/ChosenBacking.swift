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
        let sqlite = SQLiteBacking(directory: directory, history: configuration.history)
        sqlite.reports.onCheckpoint = { failure in
            log.write(
                failure: failure.map {
                    "checkpoint failed, the write-ahead log keeps growing: \($0)"
                },
                .checkpointFailed,
                orEnd: "checkpoints succeed again",
                .checkpointRestored
            )
        }
        sqlite.reports.onFinding = { log.write(.warning, .storeFinding, $0) }
        sqlite.reserveByteCount = Int64(configuration.limits[.reserveBytes])
        return ChosenBacking(
            backing: sqlite,
            name: directory,
            loading: sqlite.loading,
            report: { [("data", directory)] + report(of: sqlite) },
            keep: { history, reserveByteCount in
                sqlite.history = history
                sqlite.reserveByteCount = Int64(reserveByteCount)
            },
            loss: { sqlite.reports.lossAtClose }
        )
    }

    private static func report(of sqlite: SQLiteBacking) -> [(String, String)] {
        let status = sqlite.status
        let history = sqlite.historyStatus
        let seconds = sqlite.compactionPauseSeconds
        let pause =
            "a backup is being made; it ends in \(seconds) s if its client has stopped reading"
        return [
            ("database_bytes", "\(status.databaseByteCount)"),
            ("free_bytes", "\(history.freeByteCount)"),
            ("log_bytes", "\(status.logByteCount)"),
            ("history_rows", "\(history.rowCount)"),
            ("history_backlog", "\(history.backlogRowCount)"),
            ("compaction", history.failure ?? "ok"),
            ("checkpoint", status.checkpointFailure ?? "ok"),
            ("store", sqlite.fileFinding ?? "ok"),
        ] + (seconds > 0 ? [("compaction_pause", pause)] : [])
    }
}
