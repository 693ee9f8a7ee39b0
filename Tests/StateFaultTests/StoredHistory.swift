import Glibc
import StateEngine
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

    var loaded: LoadedStore
    var rows: [Row] = []

    /// Opens the store as a daemon does, and closes it.
    init(_ directory: String) throws {
        let backing = SQLiteBacking(directory: directory)
        var rows: [Row] = []
        loaded = try StoredHistory.whenUnlocked {
            rows = []
            return try backing.load { rows.append(Row($0)) }
        }
        self.rows = rows
        backing.close()
    }

    /// The values after the last row.
    var values: [String: String] { StoredHistory.values(after: rows) }

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

    /// The values that a keyspace serves from a data directory.
    static func served(from directory: String) throws -> [String: String] {
        let keyspace = try whenUnlocked {
            try LocalKeyspace(backing: SQLiteBacking(directory: directory))
        }
        defer { keyspace.close() }
        let faults = keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
        guard faults.isEmpty else { throw SystemFailure("\(directory): \(faults)") }
        var values: [String: String] = [:]
        for (key, entry) in keyspace.entries(.everything, after: nil, limit: .max) {
            values[key.description] = String(decoding: entry.value, as: UTF8.self)
        }
        return values
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
