import StateEngine
import StateRules
import StateSQLite
import StateServer

/// Where the values live: the backing that the options ask for, and what is said of it.
struct ChosenBacking {
    let backing: any Backing
    /// As the log names it: the data directory, or `memory`.
    let name: String
    /// What STATE.STATUS tells of it.
    let report: () -> [(String, String)]
    /// Has it keep so much of the past, and of the disk, from now on.
    let keep: @Sendable (HistoryLimits, _ reserveByteCount: Int) -> Void
    /// What stood in the way of a clean stop, after it; nil for nothing.
    let loss: () -> String?

    /// Makes the data directory where it is missing; opens nothing yet.
    init(_ options: Options, log: Log) throws(StateError) {
        guard !options.isMemory else {
            let memory = MemoryBacking(directory: try DataDirectory.prepare(options))
            backing = memory
            name = "memory"
            report = ChosenBacking.ceilingReport(memory, log)
            keep = { _, _ in }
            loss = { nil }
            return
        }
        let directory = try DataDirectory.prepare(options)
        let sqlite = SQLiteBacking(directory: directory, history: options.configuration.history)
        sqlite.onCheckpoint = { failure in
            log.write(
                failure: failure.map { "the log cannot be moved into the database: \($0)" },
                orEnd: "the log is moved into the database again"
            )
        }
        sqlite.onFinding = { log.write(.warning, $0) }
        backing = sqlite
        name = directory
        sqlite.reserveByteCount = Int64(options.configuration.limits[.reserveBytes])
        keep = { history, reserveByteCount in
            sqlite.history = history
            sqlite.reserveByteCount = Int64(reserveByteCount)
        }
        loss = { sqlite.lossAtClose }
        report = {
            let status = sqlite.status
            let history = sqlite.historyStatus
            return [
                ("data", directory),
                ("database_bytes", "\(status.databaseByteCount)"),
                ("free_bytes", "\(history.freeByteCount)"),
                ("log_bytes", "\(status.logByteCount)"),
                ("history_rows", "\(history.rowCount)"),
                ("history_backlog", "\(history.backlogRowCount)"),
                ("compaction", history.failure ?? "ok"),
                ("checkpoint", status.checkpointFailure ?? "ok"),
                ("store", sqlite.fileFinding ?? "ok"),
            ]
        }
    }

    private static func ceilingReport(
        _ memory: MemoryBacking,
        _ log: Log
    ) -> () -> [(String, String)] {
        memory.onCeiling = log.writeCeiling
        return {
            guard let ceiling = memory.ceiling else { return [] }
            let status = ceiling.status
            return [
                ("ceiling_file", ceiling.path),
                ("revision_ceiling", "\(status.ceiling)"),
                ("ceiling", status.failure?.message ?? "ok"),
            ]
        }
    }
}
