import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport

/// Everything that a start reads from a data directory.
struct StoredHistory {
    /// One change.
    struct Row: Hashable {
        var revision: Int64
        var key: String
        /// Nil: deleted.
        var value: String?
    }

    let epoch: Epoch
    let revision: Int64
    /// All changes, in order.
    private(set) var rows: [Row] = []
    /// The present values.
    private(set) var values: [String: String] = [:]
    let metadata: [String: String]

    /// Serves the store as a daemon does, and closes it.
    ///
    /// `files` is the directory of the log if it is no real one.
    init(_ directory: String, _ files: (any LogFiles)? = nil) throws {
        let keyspace = try StoredHistory.whenUnlocked {
            try LocalKeyspace(backing: StoredHistory.backing(directory, files))
        }
        defer { keyspace.close() }
        let (faults, metadata) = keyspace.withCore { core in
            var metadata: [String: String] = [:]
            var receipt = core.makeReceipt()
            core.forEachMetadataEntry(&receipt) { metadata[$0] = $1 }
            return (core.checkInvariants(retainedCauseCount: 0), metadata)
        }
        guard faults.isEmpty else { throw SystemFailure("\(directory): \(faults)") }
        (epoch, revision) = (keyspace.epoch, keyspace.revision)
        self.metadata = metadata
        for (key, entry) in keyspace.entries(.everything, after: nil, limit: .max) {
            values[key.description] = String(decoding: entry.value, as: UTF8.self)
        }
        var rows: [Row] = []
        if let history = try keyspace.history?.openHistory() {
            try history.snapshot { _ in
                _ = try history.forEachChange(after: .end(of: 0), through: .max) { change in
                    rows.append(Row(change))
                    return true
                }
            }
        }
        self.rows = rows
    }

    /// A store with small segments, which is settled and continued often, and keeps all of the past.
    static func backing(
        _ directory: String,
        _ files: (any LogFiles)? = nil,
        patience: Int64? = nil
    ) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        if let patience { options.log.patience = patience }
        options.history = .keep(changes: .max)
        options.log.segmentByteCount = 24 << 10
        options.log.largeSegmentByteCount = 96 << 10
        options.settling.logByteCount = 60_000
        options.settling.sliceByteCount = 8 << 10
        let location = StoreLocation(directory: directory)
        return SQLiteBacking(location, log: location.logDirectory, options) {
            (path) throws(LogFileFailure) in
            if let files { return files }
            return try LogDirectory(path)
        }
    }

    static func values(after rows: some Sequence<Row>) -> [String: String] {
        var values: [String: String] = [:]
        for row in rows { values[row.key] = row.value }
        return values
    }

    /// Tries again while the store has an owner, for 10 seconds at most.
    ///
    /// A test that starts a process at the same moment hands it the descriptors of all, until it becomes another program.
    static func whenUnlocked<R>(_ body: () throws -> R) throws -> R {
        try retried(while: .locked, within: .seconds(10), body)
    }
}

extension StoredHistory.Row {
    init(_ change: borrowing StoredChange) {
        self.init(
            revision: change.revision,
            key: change.key.text,
            value: change.value?.text
        )
    }
}
