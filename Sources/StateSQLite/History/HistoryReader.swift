import CSQLite
import StateEngine
import StateSystem

/// Reads the history in order and checks each row.
final class HistoryReader {
    /// The number of rows so far.
    private(set) var rowCount: Int64 = 0
    /// The revision of the last row; 0 before the first.
    private(set) var revision: Int64 = 0
    private var ordinal: Int32 = -1

    private let path: String
    private let receive: (borrowing StoredChange) -> Void
    private var damage: StateError?

    private init(path: String, receive: @escaping (borrowing StoredChange) -> Void) {
        self.path = path
        self.receive = receive
    }

    /// Calls `receive` for every row; the bytes in a change are valid only during that call.
    ///
    /// A long history is read and checked on another thread meanwhile; then `lookAhead` is called
    /// with the next rows.
    ///
    /// - Returns: The number of rows, and the last revision.
    /// - Throws: ``StateError/Code/corrupt``, naming the first damaged row; or SQLite's error.
    static func readAll(
        _ connection: SQLiteConnection,
        lookingAhead lookAhead: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> (rowCount: Int64, revision: Int64) {
        // No page is read twice: a cache of them would stay with the process, all unused.
        let cacheSize = try connection.number("PRAGMA cache_size")
        try connection.set("cache_size=-256")
        defer { try? connection.set("shrink_memory", "cache_size=\(cacheSize)") }
        guard try connection.number("PRAGMA page_count") > 1_024 else {
            return try read(connection, receive)
        }
        let relay = RowRelay()
        let thread = WorkerThread(name: "reading")
        // Used by the thread until it is joined.
        nonisolated(unsafe) var result: Result<(rowCount: Int64, revision: Int64), any Error>?
        nonisolated(unsafe) let connection = connection
        let isStarted = thread.tryStart {
            result = Result { try read(connection) { relay.pass($0) } }
            relay.end()
        }
        guard isStarted else { return try read(connection, receive) }
        relay.forEach(lookingAhead: lookAhead, receive)
        thread.join()
        guard let result else { preconditionFailure("the rows were not read") }
        return try result.get()
    }

    private static func read(
        _ connection: SQLiteConnection,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> (rowCount: Int64, revision: Int64) {
        try withoutActuallyEscaping(receive) { receive in
            let reader = HistoryReader(path: connection.path, receive: receive)
            let columnCount = HistorySchema.columnCount
            do {
                try connection.receive(HistorySchema.receiveAll, columnCount: columnCount) {
                    reader.take($0)
                }
            } catch {
                throw reader.damage ?? error
            }
            return (reader.rowCount, reader.revision)
        }
    }

    /// Checks one row and passes it on.
    ///
    /// - Returns: False if it is damaged, which ends the statement.
    private func take(_ columns: SQLiteColumns) -> Bool {
        let change = HistoryReader.change(in: columns)
        guard sqlite3_value_int64(columns[12]) == Int64(RowChecksum.of(change)) else {
            return refuse(change, "does not match its checksum")
        }
        guard change.isPossible else {
            return refuse(change, "has numbers that no change can have")
        }
        guard (change.revision, change.ordinal) > (revision, ordinal) else {
            return refuse(change, "comes after revision \(revision), ordinal \(ordinal)")
        }
        revision = change.revision
        ordinal = change.ordinal
        rowCount += 1
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
    private static func bytes(of column: OpaquePointer?) -> Bytes {
        let start = sqlite3_value_blob(column)
        return Bytes(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(column)))
    }

    private static func value(of column: OpaquePointer?) -> Bytes? {
        if let start = sqlite3_value_blob(column) {
            return Bytes(start: start, count: Int(sqlite3_value_bytes(column)))
        }
        // NULL and the empty blob both have no address.
        return sqlite3_value_type(column) == SQLITE_NULL ? nil : Bytes(start: nil, count: 0)
    }

    private static func expiry(of column: OpaquePointer?) -> Int64? {
        let expires = sqlite3_value_int64(column)
        return expires != 0 || sqlite3_value_type(column) != SQLITE_NULL ? expires : nil
    }
}
