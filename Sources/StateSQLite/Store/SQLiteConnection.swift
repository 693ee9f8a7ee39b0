import CLinux
import CSQLite
package import StateEngine

/// One connection to one database file, for one thread at a time.
///
/// Closing it leaves SQLite's own log as it is, unless ``checkpointsOnClose()`` was called: a
/// refused store stays the same, byte for byte.
package final class SQLiteConnection {
    let path: String
    let handle: OpaquePointer
    /// Held until the connection is closed: properties are released after the body of `deinit`.
    private let lock: OwnerLock?
    private var hooks: [UnsafeMutablePointer<csqlite_file_hook>] = []

    /// Opens the file at `path`, which must exist; reads and locks nothing yet.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - uri: The same file as a URI for SQLite, to open it for reading only; nil for reading and
    ///     writing.
    ///   - system: One of SQLite's VFS names; nil for the default.
    ///   - lock: The owner's lock on the store, which outlives the connection.
    /// - Throws: SQLite's error.
    package init(
        path: String,
        reading uri: String? = nil,
        system: String? = nil,
        under lock: OwnerLock? = nil
    ) throws(SQLiteFailure) {
        let access = uri == nil ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
        var opened: OpaquePointer?
        // NOMUTEX: SQLite takes no locks of its own, because we use one thread at a time.
        // https://www.sqlite.org/threadsafe.html
        let code = sqlite3_open_v2(uri ?? path, &opened, access | SQLITE_OPEN_NOMUTEX, system)
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
        csqlite_sync_to_the_disk(opened)
    }

    // Statements retain their connection, so none is left here, and closing cannot fail because of
    // them.
    deinit {
        sqlite3_close(handle)
        for hook in hooks { hook.deallocate() }
    }

    /// Sets how long to retry if another process holds a lock.
    /// https://www.sqlite.org/c3ref/busy_timeout.html
    func waitForLocks(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        sqlite3_busy_timeout(handle, Int32(seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    }

    /// Makes closing the last connection move SQLite's own log into the database and remove it.
    package func checkpointsOnClose() { _ = csqlite_leave_log_on_close(handle, 0) }

    /// Syncs the database file, but not SQLite's own log.
    func sync() throws(SQLiteFailure) {
        let code = csqlite_sync(handle)
        guard code == SQLITE_OK else { throw failure(code, during: "sync") }
    }

    /// A file of SQLite: the database or SQLite's own log.
    enum File: Int32 {
        // https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html
        case database = 7
        case log = 28
    }

    /// Writes a file again as it is, and syncs it: after a sync that failed, the kernel may call pages
    /// clean that are not on the disk, and only another write makes them dirty.
    /// https://lwn.net/Articles/752063/
    ///
    /// - Throws: SQLite's error; nobody can say what the disk has.
    func rewrite(_ file: File) throws(SQLiteFailure) {
        var found: UnsafeMutablePointer<sqlite3_file>?
        sqlite3_file_control(handle, "main", file.rawValue, &found)
        guard let found, let methods = found.pointee.pMethods, let read = methods.pointee.xRead,
            let write = methods.pointee.xWrite, let sync = methods.pointee.xSync,
            let measure = methods.pointee.xFileSize
        else { throw failure(SQLITE_MISUSE, during: "rewrite") }
        var (size, offset): (sqlite3_int64, sqlite3_int64) = (0, 0)
        try check(measure(found, &size), "measure")
        // SQLite's unix files take less than 128 KiB at once.
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
        defer { piece.deallocate() }
        while offset < size {
            let count = Int32(min(sqlite3_int64(piece.count), size - offset))
            try check(read(found, piece.baseAddress, count, offset), "read again")
            try check(write(found, piece.baseAddress, count, offset), "write again")
            offset += sqlite3_int64(count)
        }
        try check(sync(found, SQLITE_SYNC_NORMAL), "sync again")
    }

    private func check(_ code: Int32, _ operation: String) throws(SQLiteFailure) {
        guard code == SQLITE_OK else { throw failure(code, during: operation) }
    }

    /// Syncs a file after so many bytes that are written to it, so that a commit of others does not wait
    /// for all of a large transaction; once for a file.
    ///
    /// - Throws: SQLite's error; nothing is synced in pieces then.
    func syncPieces(of file: File, each byteCount: Int) throws(SQLiteFailure) {
        let hook = UnsafeMutablePointer<csqlite_file_hook>.allocate(capacity: 1)
        hooks.append(hook)
        let code = csqlite_sync_pieces(
            handle,
            file.rawValue,
            hook,
            Int32(byteCount),
            clinux_let_others_run
        )
        guard code == SQLITE_OK else { throw failure(code, during: "sync in pieces") }
    }

    /// From now on the files of ``syncPieces(of:each:)`` are synced after so many bytes.
    func setPieces(_ byteCount: Int) {
        for hook in hooks { hook.pointee.most_unsynced = Int32(byteCount) }
    }

    /// Whether a transaction is open.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// How many rows the last statement changed.
    var changeCount: Int64 { Int64(sqlite3_changes(handle)) }

    /// Whether the file could only be opened for reading.
    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

    /// Runs statements without result rows.
    package func execute(_ sql: String) throws(SQLiteFailure) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(code, during: sql) }
    }

    /// Runs `body` in a transaction, which may still be open if this throws.
    package func transaction(_ body: () throws(SQLiteFailure) -> Void) throws(SQLiteFailure) {
        try execute("BEGIN IMMEDIATE")
        try body()
        try execute("COMMIT")
    }

    /// Sets options of the connection: `name=value` each.
    func set(_ options: String...) throws(SQLiteFailure) {
        for option in options { try execute("PRAGMA \(option)") }
    }

    /// Makes the database one with a write-ahead log, if it is not.
    ///
    /// - Throws: SQLite's error, also where SQLite gives none.
    func useLog() throws(SQLiteFailure) {
        let mode = try text("PRAGMA journal_mode=WAL")
        guard mode == "wal" else { throw failure(SQLITE_IOERR, during: "journal_mode=WAL") }
    }

    /// Prepares a statement that will run many times.
    func prepare(_ sql: String) throws(SQLiteFailure) -> SQLiteStatement {
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let code = sqlite3_prepare_v3(handle, sql, -1, flags, &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code, during: sql) }
        return SQLiteStatement(statement, of: self)
    }

    /// The first column of the first row as a number; 0 if there is no row.
    func number(_ sql: String) throws(SQLiteFailure) -> Int64 {
        let statement = try prepare(sql)
        return try statement.step() ? statement.number(at: 0) : 0
    }

    /// The first column of the first row as text; empty if there is no row.
    package func text(_ sql: String) throws(SQLiteFailure) -> String {
        let statement = try prepare(sql)
        return try statement.step() ? statement.text(at: 0) : ""
    }

    /// Runs a SELECT of `receive(…)` over all its rows, and calls `body` with the columns of each,
    /// without copying them.
    ///
    /// It uses an aggregate function over all rows instead of `sqlite3_step` for each: SQLite then
    /// stays in one loop, and allocates nothing per row. https://www.sqlite.org/appfunc.html
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - count: How many columns `receive` has.
    ///   - body: Returns false to end the statement; the columns are valid only during the call.
    /// - Throws: SQLite's error, also if `body` ended it.
    func receive(
        _ sql: String,
        columnCount count: Int,
        _ body: @escaping (SQLiteColumns) -> Bool
    ) throws(SQLiteFailure) {
        let receiver = RowReceiver(body)
        let context = Unmanaged.passUnretained(receiver).toOpaque()
        try define(count, context, RowReceiver.step)
        defer { withExtendedLifetime(receiver) { try? define(count, nil, nil) } }
        _ = try number(sql)
    }

    /// Defines the aggregate function `receive`, which has no result, or removes it.
    ///
    /// https://www.sqlite.org/c3ref/create_function.html
    private func define(
        _ columnCount: Int,
        _ context: UnsafeMutableRawPointer?,
        _ step: RowReceiver.Step?
    ) throws(SQLiteFailure) {
        let code = sqlite3_create_function_v2(
            handle,
            "receive",
            Int32(columnCount),
            SQLITE_UTF8 | SQLITE_DIRECTONLY,
            context,
            nil,
            step,
            step == nil ? nil : { _ in },
            nil
        )
        guard code == SQLITE_OK else { throw failure(code, during: "define receive") }
    }

    /// The first bytes of the file on disk, read through SQLite's own descriptor.
    ///
    /// Closing a separate descriptor would drop the POSIX locks that this process holds on the
    /// file. https://www.sqlite.org/howtocorrupt.html ("Posix advisory locks canceled by a separate
    /// thread doing close()")
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

/// The columns of a row, as an aggregate function gets them.
typealias SQLiteColumns = UnsafeMutablePointer<OpaquePointer?>

/// Takes the rows of a statement.
private final class RowReceiver {
    typealias Step =
        @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void

    private let body: (SQLiteColumns) -> Bool

    init(_ body: @escaping (SQLiteColumns) -> Bool) { self.body = body }

    static let step: Step = { context, _, columns in
        guard let address = sqlite3_user_data(context), let columns else { return }
        let receiver = Unmanaged<RowReceiver>.fromOpaque(address)
        let goesOn = receiver._withUnsafeGuaranteedRef { $0.body(columns) }
        if !goesOn { sqlite3_result_error_code(context, SQLITE_ABORT) }
    }
}
