import CSQLite
package import StateEngine

/// Appends rows to the history; a run of a statement appends several if there are enough.
///
/// One INSERT of 16 rows takes half the processor time of 16 INSERTs: 0.65 instead of 1.19 µs for
/// each row at 800 rows a commit.
package final class HistoryWriter {
    /// The largest first; the last appends one row.
    private let statements: [InsertStatement]
    /// The statement whose rows are being bound.
    @exclusivity(unchecked) private var current: InsertStatement
    @exclusivity(unchecked) private var boundCount = 0
    /// How many rows of this commit are not appended yet.
    @exclusivity(unchecked) private var restCount = 0

    package init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        let single = try InsertStatement(rowCount: 1, connection)
        let four = try InsertStatement(rowCount: 4, connection)
        statements = [try InsertStatement(rowCount: 16, connection), four, single]
        current = single
    }

    /// Prepares for a commit of `rowCount` rows, also after a failed one.
    package func begin(rowCount: Int) {
        restCount = rowCount
        choose()
    }

    private func choose() {
        boundCount = 0
        for statement in statements where statement.rowCount <= restCount {
            current = statement
            return
        }
    }

    /// Appends one row in the open transaction, at once or together with the next ones.
    ///
    /// Its bytes must stay valid until the last row of the commit is appended.
    package func append(_ change: borrowing StoredChange) throws(SQLiteFailure) {
        precondition(restCount > 0, "a commit has more changes than announced")
        current.bind(change, at: boundCount)
        boundCount += 1
        guard boundCount == current.rowCount else { return }
        try current.run()
        restCount -= boundCount
        choose()
    }

    /// Whether all announced rows are in the transaction.
    var isComplete: Bool { restCount == 0 }
}

/// An INSERT of a fixed number of rows.
///
/// Blobs and text are bound without a copy (SQLITE_STATIC, a nil destructor), so the bytes of a
/// change must stay valid until it has run. https://www.sqlite.org/c3ref/bind_blob.html
private final class InsertStatement {
    let rowCount: Int
    private let statement: SQLiteStatement
    /// The values that the parameters of each row are bound to, as far as remembering them saves
    /// time.
    @exclusivity(unchecked) private var bound: [Bound]

    private struct Bound {
        var owner: Int64 = .min
        var version: Int64 = .min
        var time: Int64 = .min
        var hasExpiry = false
        var hasPrevious = false
    }

    init(rowCount: Int, _ connection: SQLiteConnection) throws(SQLiteFailure) {
        self.rowCount = rowCount
        statement = try connection.prepare(HistorySchema.insert(rowCount: rowCount))
        bound = Array(repeating: Bound(), count: rowCount)
    }

    func run() throws(SQLiteFailure) { try statement.run() }

    func bind(_ change: borrowing StoredChange, at row: Int) {
        let parameters = Parameters(
            statement: statement.handle,
            first: Int32(row * HistorySchema.columnCount)
        )
        parameters.bind(1, change.revision)
        parameters.bind(2, Int64(change.ordinal))
        parameters.bind(3, text: change.key)
        parameters.bind(4, blob: change.value)
        parameters.bind(5, change.created)
        InsertStatement.bindRare(change, parameters, &bound[row])
        parameters.bind(10, text: change.cause)
        parameters.bind(13, Int64(RowChecksum.of(change)))
    }

    /// Binds the values that often repeat.
    private static func bindRare(
        _ change: borrowing StoredChange,
        _ parameters: Parameters,
        _ bound: inout Bound
    ) {
        if Int64(change.owner) != bound.owner {
            bound.owner = Int64(change.owner)
            parameters.bind(6, bound.owner)
        }
        if change.version != bound.version {
            bound.version = change.version
            parameters.bind(7, change.version)
        }
        if change.time != bound.time {
            bound.time = change.time
            parameters.bind(8, change.time)
        }
        if let expires = change.expires {
            parameters.bind(9, expires)
            bound.hasExpiry = true
        } else if bound.hasExpiry {
            parameters.bindNull(9)
            bound.hasExpiry = false
        }
        if change.previousRevision != 0 {
            parameters.bind(11, change.previousRevision)
            parameters.bind(12, Int64(change.previousOrdinal))
            bound.hasPrevious = true
        } else if bound.hasPrevious {
            parameters.bindNull(11)
            parameters.bindNull(12)
            bound.hasPrevious = false
        }
    }
}

/// The parameters of one row of a statement, numbered from 1.
private struct Parameters {
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
