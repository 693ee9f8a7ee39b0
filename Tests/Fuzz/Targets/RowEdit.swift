import CLinux
import CSQLite
import StateEngine
import StateLog
import StateSQLite

/// A row of a key or of `meta` that says something else, and has the checksum of that.
struct RowEdit {
    let isMeta: Bool
    let row: Int
    let column: Int
    let bytes: [UInt8]

    /// Alters the database in a directory; one that SQLite cannot read stays as it is.
    func apply(to directory: String) {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open(directory + "/stated.db", &database) == SQLITE_OK else { return }
        isMeta ? alterMeta(database) : alterNewest(database)
    }

    private func alterMeta(_ database: OpaquePointer?) {
        let text = String(decoding: bytes, as: UTF8.self)
        // A name that is damaged may be none.
        let names = rows("SELECT name FROM meta", database) {
            String(decoding: Column($0, 0).bytes, as: UTF8.self)
        }
        guard !names.isEmpty else { return }
        let name = names[column % names.count]
        let checksum = Array("\(name)\0\(text)".utf8).withUnsafeBytes {
            clinux_crc32c(0, $0.baseAddress, $0.count)
        }
        let update = "UPDATE meta SET value = ?, checksum = \(checksum) WHERE name = ?"
        _ = rows(update, database, [.text(text), .text(name)]) { _ in }
    }

    private func alterNewest(_ database: OpaquePointer?) {
        let select = """
            SELECT key, value, revision, ordinal, created, owner, version, time, expires, cause FROM newest
            """
        var found = rows(select, database) { row in (0..<10).map { Column(row, $0) } }
        guard !found.isEmpty else { return }
        var columns = found.remove(at: row % found.count)
        let key = columns[0]
        let altered = column % columns.count
        columns[altered] =
            switch altered {
            case 0, 9: .text(String(decoding: bytes, as: UTF8.self))
            case 1: .blob(bytes)
            default: .number(bytes.prefix(8).reversed().reduce(0) { $0 << 8 | Int64($1) })
            }
        let update = """
            UPDATE newest SET key = ?, value = ?, revision = ?, ordinal = ?, created = ?, owner = ?, version = ?,
            time = ?, expires = ?, cause = ?, checksum = \(checksum(of: columns)) WHERE key = ?
            """
        _ = rows(update, database, columns + [key]) { _ in }
    }

    private func checksum(of columns: [Column]) -> UInt32 {
        columns[0].bytes.withUnsafeBytes { key in
            columns[1].bytes.withUnsafeBytes { value in
                columns[9].bytes.withUnsafeBytes { cause in
                    CommitCoder.checksum(
                        of: StoredChange(
                            revision: columns[2].number,
                            ordinal: Int32(truncatingIfNeeded: columns[3].number),
                            key: key,
                            value: columns[1].isNull ? nil : value,
                            created: columns[4].number,
                            owner: UInt32(truncatingIfNeeded: columns[5].number),
                            version: columns[6].number,
                            time: columns[7].number,
                            expires: columns[8].isNull ? nil : columns[8].number,
                            cause: cause,
                            previousRevision: 0,
                            previousOrdinal: 0
                        )
                    )
                }
            }
        }
    }

    /// What `read` makes of each row of a statement's answer.
    private func rows<R>(
        _ statement: String,
        _ database: OpaquePointer?,
        _ values: [Column] = [],
        _ read: (OpaquePointer?) -> R
    ) -> [R] {
        var prepared: OpaquePointer?
        defer { sqlite3_finalize(prepared) }
        guard sqlite3_prepare_v2(database, statement, -1, &prepared, nil) == SQLITE_OK else {
            return []
        }
        for (index, value) in values.enumerated() { value.bind(to: prepared, Int32(index + 1)) }
        var found: [R] = []
        while sqlite3_step(prepared) == SQLITE_ROW { found.append(read(prepared)) }
        return found
    }
}

/// A value of SQLite.
private enum Column {
    case null
    case number(Int64)
    case text(String)
    case blob([UInt8])

    init(_ row: OpaquePointer?, _ index: Int32) {
        // Order matters: asking for bytes turns a number into text.
        let type = sqlite3_column_type(row, index)
        switch type {
        case SQLITE_NULL: self = .null
        case SQLITE_INTEGER, SQLITE_FLOAT: self = .number(sqlite3_column_int64(row, index))
        default:
            let start = sqlite3_column_blob(row, index)
            let bytes = Array(Bytes(start: start, count: Int(sqlite3_column_bytes(row, index))))
            self =
                type == SQLITE_TEXT ? .text(String(decoding: bytes, as: UTF8.self)) : .blob(bytes)
        }
    }

    var isNull: Bool { if case .null = self { true } else { false } }
    var number: Int64 { if case .number(let number) = self { number } else { 0 } }

    var bytes: [UInt8] {
        switch self {
        case .text(let text): Array(text.utf8)
        case .blob(let bytes): bytes
        default: []
        }
    }

    func bind(to statement: OpaquePointer?, _ index: Int32) {
        // SQLITE_TRANSIENT: it makes a copy of its own.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch self {
        case .null: sqlite3_bind_null(statement, index)
        case .number(let number): sqlite3_bind_int64(statement, index, number)
        case .text(let text): sqlite3_bind_text(statement, index, text, -1, transient)
        case .blob(let bytes):
            sqlite3_bind_blob(statement, index, bytes, Int32(bytes.count), transient)
        }
    }
}
