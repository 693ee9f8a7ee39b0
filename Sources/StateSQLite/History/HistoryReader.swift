import CSQLite
import StateEngine
import StateSystem

/// Reads the history in order and checks each row.
final class HistoryReader {
    /// What was read.
    struct Summary {
        /// The number of rows.
        var rowCount: Int64 = 0
        /// The revision of the last row; 0 before the first.
        var revision: Int64 = 0
        /// The rows behind the compacted revision.
        var retained = RetainedRows()
    }

    @exclusivity(unchecked) private var summary = Summary()
    @exclusivity(unchecked) private var ordinal: Int32 = -1
    private let compacted: Int64

    private let path: String
    private let receive: (borrowing StoredChange) -> Void
    private var damage: StateError?

    private init(
        path: String,
        after compacted: Int64,
        receive: @escaping (borrowing StoredChange) -> Void
    ) {
        self.path = path
        self.compacted = compacted
        self.receive = receive
    }

    /// Calls `receive` for every row; the bytes in a change are valid only during that call.
    ///
    /// A long history is read and checked on another thread meanwhile; then `lookAhead` is called
    /// with the next rows.
    ///
    /// - Parameters:
    ///   - connection: To the store.
    ///   - compacted: The compacted revision.
    ///   - lookAhead: Called before `receive`, of a long history only.
    ///   - receive: Takes the rows.
    /// - Returns: What was read.
    /// - Throws: ``StateError/Code/corrupt``, naming the first damaged row; or SQLite's error.
    static func readAll(
        _ connection: SQLiteConnection,
        compacted: Int64,
        lookingAhead lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Summary {
        // No page is read twice: a cache of them would stay with the process, all unused.
        let cacheSize = try connection.number("PRAGMA cache_size")
        try connection.set("cache_size=-256")
        defer { try? connection.set("shrink_memory", "cache_size=\(cacheSize)") }
        guard try connection.number("PRAGMA page_count") > 1_024 else {
            return try read(connection, compacted, receive)
        }
        let relay = RowRelay()
        let thread = WorkerThread(name: "reading")
        // Used by the thread until it is joined.
        nonisolated(unsafe) var result: Result<Summary, any Error>?
        nonisolated(unsafe) let connection = connection
        let isStarted = thread.tryStart {
            result = Result { try read(connection, compacted) { relay.pass($0) } }
            relay.end()
        }
        guard isStarted else { return try read(connection, compacted, receive) }
        relay.forEach(lookingAhead: lookAhead, receive)
        thread.join()
        guard let result else { preconditionFailure("the rows were not read") }
        return try result.get()
    }

    private static func read(
        _ connection: SQLiteConnection,
        _ compacted: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Summary {
        try withoutActuallyEscaping(receive) { receive in
            let reader = HistoryReader(
                path: connection.path,
                after: compacted,
                receive: receive
            )
            let columnCount = 1 + HistorySchema.columnCount
            do {
                try connection.receive(HistorySchema.receiveAll, columnCount: columnCount) {
                    reader.take($0)
                }
            } catch {
                throw reader.damage ?? error
            }
            return reader.summary
        }
    }

    /// Checks one row and passes it on.
    ///
    /// - Returns: False if it is damaged, which ends the statement.
    private func take(_ columns: SQLiteColumns) -> Bool {
        let change = HistoryReader.change(in: columns + 1)
        guard sqlite3_value_int64(columns[13]) == Int64(RowChecksum.of(change)) else {
            return refuse(change, "does not match its checksum")
        }
        guard change.isPossible else {
            return refuse(change, "has numbers that no change can have")
        }
        guard (change.revision, change.ordinal) > (summary.revision, ordinal) else {
            return refuse(change, "comes after revision \(summary.revision), ordinal \(ordinal)")
        }
        summary.revision = change.revision
        ordinal = change.ordinal
        summary.rowCount += 1
        if change.revision > compacted {
            summary.retained.append(change, number: sqlite3_value_int64(columns[0]))
        }
        receive(change)
        return true
    }

    private func refuse(_ change: borrowing StoredChange, _ finding: String) -> Bool {
        damage = .damaged(
            path,
            "the row of revision \(change.revision), ordinal \(change.ordinal) \(finding)"
        )
        return false
    }

    /// The change in the columns of ``HistorySchema/columns``, without the checksum; its bytes are
    /// valid as long as the columns.
    static func change(in columns: SQLiteColumns) -> StoredChange {
        let previousRevision = sqlite3_value_int64(columns[10])
        return StoredChange(
            revision: sqlite3_value_int64(columns[0]),
            ordinal: Int32(truncatingIfNeeded: sqlite3_value_int64(columns[1])),
            key: bytes(of: columns[2]),
            value: value(of: columns[3]),
            created: sqlite3_value_int64(columns[4]),
            owner: UInt32(truncatingIfNeeded: sqlite3_value_int64(columns[5])),
            version: sqlite3_value_int64(columns[6]),
            time: sqlite3_value_int64(columns[7]),
            expires: expiry(of: columns[8]),
            cause: bytes(of: columns[9]),
            previousRevision: previousRevision,
            previousOrdinal: previousRevision == 0
                ? 0 : Int32(truncatingIfNeeded: sqlite3_value_int64(columns[11]))
        )
    }

    /// The bytes of a column.
    ///
    /// Read as a blob, even if it is text: for text, SQLite would make a copy that ends with 0.
    static func bytes(of column: OpaquePointer?) -> Bytes {
        let start = sqlite3_value_blob(column)
        return Bytes(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(column)))
    }

    static func value(of column: OpaquePointer?) -> Bytes? {
        if let start = sqlite3_value_blob(column) {
            return Bytes(start: start, count: Int(sqlite3_value_bytes(column)))
        }
        // NULL and the empty blob both have no address.
        return sqlite3_value_type(column) == SQLITE_NULL ? nil : Bytes(start: nil, count: 0)
    }

    static func expiry(of column: OpaquePointer?) -> Int64? {
        let expires = sqlite3_value_int64(column)
        return expires != 0 || sqlite3_value_type(column) != SQLITE_NULL ? expires : nil
    }
}
