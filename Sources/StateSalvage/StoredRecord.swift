import StateEngine
import StateSQLite

/// The columns of one row, in SQLite's storage format.
/// https://www.sqlite.org/fileformat2.html#record_format
struct StoredRecord {
    private var columns: [Column] = []
    private let bytes: Bytes

    private struct Column {
        var type: Int64
        var start: Int
        var byteCount: Int
    }

    /// Finds the columns; nil if `bytes` are not a record with `columnCount` of them.
    init?(_ bytes: Bytes, columnCount: Int) {
        self.bytes = bytes
        guard let header = Varint(bytes, at: 0), (1...Int64(bytes.count)).contains(header.value)
        else { return nil }
        var place = header.byteCount
        var start = Int(header.value)
        while place < Int(header.value) {
            guard columns.count < columnCount, let type = Varint(bytes, at: place),
                let count = StoredRecord.byteCount(type.value), start + count <= bytes.count
            else { return nil }
            columns.append(Column(type: type.value, start: start, byteCount: count))
            place += type.byteCount
            start += count
        }
        guard columns.count == columnCount else { return nil }
    }

    private static func byteCount(_ type: Int64) -> Int? {
        switch type {
        case 0, 8, 9: 0
        case 1...4: Int(type)
        case 5: 6
        case 6, 7: 8
        case 12...0x1_0000_0000: Int((type - 12) / 2)
        default: nil
        }
    }

    func isNull(_ index: Int) -> Bool { columns[index].type == 0 }

    /// A column as a number; 0 if it is not one.
    func number(_ index: Int) -> Int64 {
        let column = columns[index]
        switch column.type {
        case 9: return 1
        case 1...6:
            let first = Int64(Int8(bitPattern: bytes[column.start]))
            return bytes[column.start + 1..<column.start + column.byteCount]
                .reduce(first) { $0 << 8 | Int64($1) }
        default: return 0
        }
    }

    /// The bytes of a column; empty if it is neither text nor a blob.
    func bytes(_ index: Int) -> Bytes {
        let column = columns[index]
        guard column.type >= 12 else { return Bytes(start: nil, count: 0) }
        return bytes.slice(column.start, column.start + column.byteCount)
    }
}

extension StoredRecord {
    /// A row of the history: the change and its checksum; the first column stands for the row's
    /// number.
    static func historyRow(_ bytes: Bytes) -> (change: StoredChange, checksum: Int64)? {
        guard let row = StoredRecord(bytes, columnCount: 1 + HistorySchema.columnCount) else {
            return nil
        }
        let previousRevision = row.number(11)
        let change = StoredChange(
            revision: row.number(1),
            ordinal: Int32(truncatingIfNeeded: row.number(2)),
            key: row.bytes(3),
            value: row.isNull(4) ? nil : row.bytes(4),
            created: row.number(5),
            owner: UInt32(truncatingIfNeeded: row.number(6)),
            version: row.number(7),
            time: row.number(8),
            expires: row.isNull(9) ? nil : row.number(9),
            cause: row.bytes(10),
            previousRevision: previousRevision,
            previousOrdinal: previousRevision == 0
                ? 0 : Int32(truncatingIfNeeded: row.number(12))
        )
        return (change, row.number(13))
    }

    /// The change in a row of the history; nil if it is damaged, or could not have been written.
    static func wholeRow(_ bytes: Bytes) -> StoredChange? {
        guard let (change, checksum) = historyRow(bytes),
            checksum == Int64(RowChecksum.of(change)), change.isPossible
        else { return nil }
        return change
    }
}
