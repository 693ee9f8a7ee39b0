import CSQLite
import StateEngine

/// Reads the history in order, checking each row.
struct HistoryReader {
    /// Rows so far.
    private(set) var rowCount: Int64 = 0
    /// The revision of the last row; 0 before the first.
    private(set) var revision: Int64 = 0
    private var ordinal: Int32 = -1

    private let path: String
    private let statement: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        path = connection.path
        statement = try connection.prepare(HistorySchema.selectAll)
    }

    /// Calls `receive` for every row; the bytes in a change live for that call.
    ///
    /// Nothing is allocated per row: the columns are read where they lie in SQLite's page.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the first row that is not what was written; or what SQLite answered.
    mutating func readAll(_ receive: (borrowing StoredChange) -> Void) throws {
        let row = statement.handle
        while try statement.step() {
            let change = HistoryReader.change(in: row)
            guard sqlite3_column_int64(row, 12) == Int64(RowChecksum.of(change)) else {
                throw damage(change, "does not match its checksum")
            }
            guard (change.revision, change.ordinal) > (revision, ordinal) else {
                throw damage(change, "comes after revision \(revision), ordinal \(ordinal)")
            }
            revision = change.revision
            ordinal = change.ordinal
            rowCount += 1
            receive(change)
        }
    }

    private static func change(in row: OpaquePointer) -> StoredChange {
        let previousRevision = sqlite3_column_int64(row, 10)
        return StoredChange(
            revision: sqlite3_column_int64(row, 0),
            ordinal: Int32(truncatingIfNeeded: sqlite3_column_int64(row, 1)),
            key: bytes(in: row, at: 2),
            value: value(in: row),
            created: sqlite3_column_int64(row, 4),
            owner: UInt32(truncatingIfNeeded: sqlite3_column_int64(row, 5)),
            version: sqlite3_column_int64(row, 6),
            time: sqlite3_column_int64(row, 7),
            expires: expiry(in: row),
            cause: bytes(in: row, at: 9),
            previousRevision: previousRevision,
            previousOrdinal: previousRevision == 0
                ? 0 : Int32(truncatingIfNeeded: sqlite3_column_int64(row, 11))
        )
    }

    /// The bytes of a column. Asked for as a blob, also where it is text: as text, SQLite would copy it to end it with 0.
    private static func bytes(in row: OpaquePointer, at column: Int32) -> Bytes {
        let start = sqlite3_column_blob(row, column)
        return Bytes(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(row, column)))
    }

    private static func value(in row: OpaquePointer) -> Bytes? {
        if let start = sqlite3_column_blob(row, 3) {
            return Bytes(start: start, count: Int(sqlite3_column_bytes(row, 3)))
        }
        // NULL and the blob of no bytes have no address both.
        return sqlite3_column_type(row, 3) == SQLITE_NULL ? nil : Bytes(start: nil, count: 0)
    }

    private static func expiry(in row: OpaquePointer) -> Int64? {
        let expires = sqlite3_column_int64(row, 8)
        return expires != 0 || sqlite3_column_type(row, 8) != SQLITE_NULL ? expires : nil
    }

    private func damage(_ change: borrowing StoredChange, _ finding: String) -> StateError {
        .damaged(
            path,
            "the row of revision \(change.revision), ordinal \(change.ordinal) \(finding)"
        )
    }
}
