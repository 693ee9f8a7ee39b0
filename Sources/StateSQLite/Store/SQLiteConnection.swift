import CSQLite
package import StateEngine

/// One connection to one database file, for one thread at a time.
///
/// Closing it leaves the write-ahead log as it is until ``checkpointsOnClose()`` was called: a store that was refused
/// stays as it was, byte for byte.
package final class SQLiteConnection {
    let path: String
    let handle: OpaquePointer
    /// Held until the connection is closed: properties go after the body of `deinit`.
    private let lock: OwnerLock?

    /// Opens the file at `path`, which must be there.
    ///
    /// Nothing is read yet, and nothing locked. The owner's lock on the store outlives the connection.
    package convenience init(path: String, under lock: OwnerLock?) throws(SQLiteFailure) {
        try self.init(path, as: path, SQLITE_OPEN_READWRITE, system: nil, under: lock)
    }

    /// Opens the file at `path`, which must be there, for reading only.
    ///
    /// `name` is the same file as SQLite is told, where a URI may stand, and `system` the name of one of SQLite's
    /// interfaces to the system; nil for the usual one.
    convenience init(
        reading path: String,
        as name: String,
        system: String? = nil
    ) throws(SQLiteFailure) {
        let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
        try self.init(path, as: name, flags, system: system, under: nil)
    }

    private init(
        _ path: String,
        as name: String,
        _ access: Int32,
        system: String?,
        under lock: OwnerLock?
    ) throws(SQLiteFailure) {
        var opened: OpaquePointer?
        // NOMUTEX: SQLite takes no lock of its own, for one thread at a time is what we promise.
        // https://www.sqlite.org/threadsafe.html
        let code = sqlite3_open_v2(name, &opened, access | SQLITE_OPEN_NOMUTEX, system)
        guard code == SQLITE_OK, let opened else {
            let failure = SQLiteFailure(code, of: opened, during: "open")
            sqlite3_close(opened)
            throw failure
        }
        self.path = path
        handle = opened
        self.lock = lock
        sqlite3_extended_result_codes(opened, 1)
        waitForLocks(.seconds(5))
        _ = csqlite_leave_log_on_close(opened, 1)
    }

    // Statements hold their connection, so none is left here, and closing cannot fail for them.
    deinit { sqlite3_close(handle) }

    /// How long to try again where a stranger holds a lock. https://www.sqlite.org/c3ref/busy_timeout.html
    func waitForLocks(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        sqlite3_busy_timeout(handle, Int32(seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    }

    /// From here on, closing the last connection moves the log into the database and removes it.
    package func checkpointsOnClose() { _ = csqlite_leave_log_on_close(handle, 0) }

    /// Whether a transaction is open.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Rows that the last statement changed.
    var changeCount: Int64 { Int64(sqlite3_changes(handle)) }

    /// Whether the file could only be opened for reading.
    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

    /// Runs statements that give no rows.
    package func execute(_ sql: String) throws(SQLiteFailure) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(code, during: sql) }
    }

    /// Prepares one statement that is to be run many times.
    func prepare(_ sql: String) throws(SQLiteFailure) -> SQLiteStatement {
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let code = sqlite3_prepare_v3(handle, sql, -1, flags, &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code, during: sql) }
        return SQLiteStatement(statement, of: self)
    }

    /// The first column of the first row as a number; 0 where there is no row.
    func number(_ sql: String) throws(SQLiteFailure) -> Int64 {
        let statement = try prepare(sql)
        return try statement.step() ? statement.number(at: 0) : 0
    }

    /// The first column of the first row as text; empty where there is no row.
    package func text(_ sql: String) throws(SQLiteFailure) -> String {
        let statement = try prepare(sql)
        return try statement.step() ? statement.text(at: 0) : ""
    }

    /// Defines an aggregate function of this connection that gives no result, or takes it away.
    ///
    /// https://www.sqlite.org/c3ref/create_function.html
    func define(
        _ name: String,
        argumentCount: Int32,
        _ context: UnsafeMutableRawPointer?,
        step: (
            @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void
        )?
    ) throws(SQLiteFailure) {
        let code = sqlite3_create_function_v2(
            handle,
            name,
            argumentCount,
            SQLITE_UTF8 | SQLITE_DIRECTONLY,
            context,
            nil,
            step,
            step == nil ? nil : { _ in },
            nil
        )
        guard code == SQLITE_OK else { throw failure(code, during: "define \(name)") }
    }

    /// The first bytes of the file as they are on disk, read through SQLite's own descriptor.
    ///
    /// Not by one of ours: closing that would drop the POSIX locks that this process holds on the file.
    /// https://www.sqlite.org/howtocorrupt.html ("Posix advisory locks canceled by a separate thread doing close()")
    func readHeader(byteCount: Int) -> [UInt8]? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        guard let file, let read = file.pointee.pMethods?.pointee.xRead else { return nil }
        var bytes = [UInt8](repeating: 0, count: byteCount)
        let code = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, Int32(byteCount), 0) }
        return code == SQLITE_OK ? bytes : nil
    }

    func failure(_ code: Int32, during operation: String) -> SQLiteFailure {
        SQLiteFailure(code, of: handle, during: operation)
    }
}

/// One prepared statement.
final class SQLiteStatement {
    let handle: OpaquePointer
    private let connection: SQLiteConnection

    fileprivate init(_ handle: OpaquePointer, of connection: SQLiteConnection) {
        self.handle = handle
        self.connection = connection
    }

    deinit { sqlite3_finalize(handle) }

    /// Goes to the next row.
    ///
    /// - Returns: False after the last.
    func step() throws(SQLiteFailure) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw failure(code)
        }
    }

    /// Runs the statement to its end and makes it ready for the next time.
    func run() throws(SQLiteFailure) {
        let code = sqlite3_step(handle)
        guard code == SQLITE_DONE || code == SQLITE_ROW else {
            let failure = failure(code)
            sqlite3_reset(handle)
            throw failure
        }
        sqlite3_reset(handle)
    }

    /// Makes the statement ready for the next time, also half way.
    func reset() { sqlite3_reset(handle) }

    /// Binds a parameter, numbered from 1, of a statement that is ready.
    func bind(_ number: Int32, _ value: Int64) { sqlite3_bind_int64(handle, number, value) }

    func number(at column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// The bytes of a text or a blob, which live until the next step; nil for NULL.
    func bytes(at column: Int32) -> Bytes? {
        // Asked for as a blob, also where it is text: as text, SQLite would copy it to end it with 0.
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
