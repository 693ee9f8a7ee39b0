import CSQLite
import StateEngine

/// Appends rows to the history through one prepared statement.
///
/// Blobs and text are bound where they lie (SQLITE_STATIC, a nil destructor), which is why the bytes of a change have to live
/// until its commit has ended. https://www.sqlite.org/c3ref/bind_blob.html
final class HistoryWriter {
    private let statement: SQLiteStatement
    /// What the statement's parameters are bound to, where it is worth remembering.
    private var bound = Bound()

    private struct Bound {
        var revision: Int64 = .min
        var owner: Int64 = .min
        var version: Int64 = .min
        var time: Int64 = .min
        var hasExpiry = false
        var hasPrevious = false
    }

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        statement = try connection.prepare(HistorySchema.insert)
    }

    /// Inserts one row, in the transaction that is open.
    func append(_ change: borrowing StoredChange) throws(SQLiteFailure) {
        let row = statement.handle
        if change.revision != bound.revision { begin(change) }
        sqlite3_bind_int64(row, 2, Int64(change.ordinal))
        sqlite3_bind_text(
            row,
            3,
            change.key.baseAddress?.assumingMemoryBound(to: CChar.self),
            Int32(change.key.count),
            nil
        )
        bindValue(change.value)
        sqlite3_bind_int64(row, 5, change.created)
        if Int64(change.owner) != bound.owner {
            bound.owner = Int64(change.owner)
            sqlite3_bind_int64(row, 6, bound.owner)
        }
        if change.version != bound.version {
            bound.version = change.version
            sqlite3_bind_int64(row, 7, change.version)
        }
        if change.time != bound.time {
            bound.time = change.time
            sqlite3_bind_int64(row, 8, change.time)
        }
        bindExpiry(change.expires)
        bindPrevious(change.previousRevision, change.previousOrdinal)
        sqlite3_bind_int64(row, 13, Int64(RowChecksum.of(change)))
        let code = sqlite3_step(row)
        guard code == SQLITE_DONE else {
            let failure = statement.failure(code)
            sqlite3_reset(row)
            throw failure
        }
        sqlite3_reset(row)
    }

    /// Binds what all changes of one transaction share.
    private func begin(_ change: borrowing StoredChange) {
        bound.revision = change.revision
        sqlite3_bind_int64(statement.handle, 1, change.revision)
        guard change.cause.count > 0 else {
            sqlite3_bind_null(statement.handle, 10)
            return
        }
        sqlite3_bind_text(
            statement.handle,
            10,
            change.cause.baseAddress?.assumingMemoryBound(to: CChar.self),
            Int32(change.cause.count),
            nil
        )
    }

    private func bindValue(_ value: Bytes?) {
        if let value {
            if value.count > 0 {
                sqlite3_bind_blob(statement.handle, 4, value.baseAddress, Int32(value.count), nil)
            } else {
                // A blob of no bytes; bind_blob would make NULL of a nil address.
                sqlite3_bind_zeroblob(statement.handle, 4, 0)
            }
        } else {
            sqlite3_bind_null(statement.handle, 4)
        }
    }

    private func bindExpiry(_ expires: Int64?) {
        if let expires {
            sqlite3_bind_int64(statement.handle, 9, expires)
            bound.hasExpiry = true
        } else if bound.hasExpiry {
            sqlite3_bind_null(statement.handle, 9)
            bound.hasExpiry = false
        }
    }

    private func bindPrevious(_ revision: Int64, _ ordinal: Int32) {
        if revision != 0 {
            sqlite3_bind_int64(statement.handle, 11, revision)
            sqlite3_bind_int64(statement.handle, 12, Int64(ordinal))
            bound.hasPrevious = true
        } else if bound.hasPrevious {
            sqlite3_bind_null(statement.handle, 11)
            sqlite3_bind_null(statement.handle, 12)
            bound.hasPrevious = false
        }
    }
}
