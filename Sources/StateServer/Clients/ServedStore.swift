/// Properties of the store that is served.
struct ServedStore {
    let isPersistent: Bool
    /// Whether earlier values can be read.
    let hasHistory: Bool
    /// The storage's fields in STATE.STATUS: name and value.
    let report: () -> [(String, String)]
    /// How many changes are published and not stored yet, and their bytes.
    let deferred: () -> (count: Int, byteCount: Int)
    /// What cannot be read in the store, as a sentence.
    var damage: String?
    /// Whether a line said that the disk is full, and no write has succeeded since.
    var hasReportedFull = false
}

extension Registry {
    /// Whom other clients' commands matter to.
    struct Observers {
        /// Whether some connection is sent every command (MONITOR).
        var hasMonitors = false
        /// Whether a rule has reads logged.
        var logsReads = false
        /// Whether reads of the copy of a cluster are refused now.
        var refusesStale = false
    }

    /// How many there are, and have been.
    struct Counts {
        /// The watches of all connections.
        var watches = 0
        /// How many connections there were since the start.
        var accepted = 0
        /// How many connections were ended because the client did not read its messages.
        var letGo = 0
        /// Commands of closed connections.
        var endedCommands = 0
        /// CONFIG RESETSTAT: what was counted until then.
        var before = (accepted: 0, commands: 0)
    }
}
