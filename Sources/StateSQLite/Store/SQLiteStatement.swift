import CSQLite
import StateEngine

/// One prepared statement.
final class SQLiteStatement {
    let handle: OpaquePointer
    private let connection: SQLiteConnection

    init(_ handle: OpaquePointer, of connection: SQLiteConnection) {
        self.handle = handle
        self.connection = connection
    }

    deinit { sqlite3_finalize(handle) }

    /// Advances to the next row.
    ///
    /// - Returns: False after the last.
    func step() throws(SQLiteFailure) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw failure(code)
        }
    }

    /// Runs the statement to its end and resets it.
    func run() throws(SQLiteFailure) {
        let code = sqlite3_step(handle)
        guard code == SQLITE_DONE || code == SQLITE_ROW else {
            let failure = failure(code)
            sqlite3_reset(handle)
            throw failure
        }
        sqlite3_reset(handle)
    }

    /// Resets the statement, even if it has not ended.
    func reset() { sqlite3_reset(handle) }

    /// Binds a parameter, numbered from 1, of a statement that has been reset.
    func bind(_ number: Int32, _ value: Int64) { sqlite3_bind_int64(handle, number, value) }

    func number(at column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// The bytes of a text or a blob, valid until the next step; nil for NULL.
    func bytes(at column: Int32) -> Bytes? {
        // Read as a blob, even if it is text: for text, SQLite would make a copy that ends with 0.
        if let start = sqlite3_column_blob(handle, column) {
            return Bytes(start: start, count: Int(sqlite3_column_bytes(handle, column)))
        }
        return isNull(at: column) ? nil : Bytes(start: nil, count: 0)
    }

    func text(at column: Int32) -> String {
        guard let text = sqlite3_column_text(handle, column) else { return "" }
        return String(cString: text)
    }

    func isNull(at column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    func failure(_ code: Int32) -> SQLiteFailure {
        connection.failure(code, during: sqlite3_sql(handle).map { String(cString: $0) } ?? "step")
    }
}

extension SQLiteStatement {
    /// Binds a parameter, numbered from 1, to a copy of a text.
    func bind(_ number: Int32, text: String) {
        var text = text
        text.withUTF8 { bytes in
            // SQLITE_TRANSIENT, a macro that Swift does not see: SQLite copies the bytes.
            let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
            let start = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
            sqlite3_bind_text(handle, number, start, Int32(bytes.count), copies)
        }
    }
}

/// The parameters of one row of a statement, numbered from 1.
struct Parameters {
    let statement: OpaquePointer
    /// How many parameters precede this row's.
    let first: Int32

    func bind(_ number: Int32, _ value: Int64) {
        sqlite3_bind_int64(statement, first + number, value)
    }

    func bindNull(_ number: Int32) { sqlite3_bind_null(statement, first + number) }

    /// Binds NULL if the text is empty.
    func bind(_ number: Int32, text: Bytes) {
        let start = text.count > 0 ? text.baseAddress : nil
        sqlite3_bind_text(
            statement,
            first + number,
            start?.assumingMemoryBound(to: CChar.self),
            Int32(text.count),
            nil
        )
    }

    /// Binds an empty blob if the value is empty, NULL if it is nil.
    func bind(_ number: Int32, blob: Bytes?) {
        if let blob, blob.count > 0 {
            sqlite3_bind_blob(statement, first + number, blob.baseAddress, Int32(blob.count), nil)
        } else if blob != nil {
            // bind_blob would bind NULL for a nil address.
            sqlite3_bind_zeroblob(statement, first + number, 0)
        } else {
            bindNull(number)
        }
    }
}

/// The values of columns that an aggregate function gets.
enum SQLiteColumn {
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
