import CSQLite
import StateEngine

/// Takes superseded rows out of one stretch, in pieces.
struct StretchSweep {
    /// Which of ``SweptRows/stretches``.
    let index: Int
    private let stretch: SweptRows.Stretch
    private var superseded: OrderedPlaces
    private let dropsTombstones: Bool
    private let namesOlder: Bool
    /// Whether numbers and places of rows are enough: all values are short, and none is a delete.
    private let looksAtPlaces: Bool
    /// The place before its first row.
    private let start: HistoryPlace
    /// Up to this number rows were looked at; nil before that.
    private var number: Int64?
    /// The number of the last row; nil until it was searched for.
    private var end: Int64?
    /// How many numbers have about 128 rows.
    private var stride: Int64 = 128
    /// Rows may be closer together in a part of it: at most so many are looked at in a row.
    private static let longestStride: Int64 = 512

    /// The most bytes that a value has in the mean where its length is not looked at.
    private static let shortByteCount: Int64 = 256

    // What stays.
    private(set) var rowCount = 0
    private(set) var byteCount: Int64 = 0
    private(set) var tombstoneCount = 0
    private(set) var isAtEnd = false
    /// The rows that go and what they superseded, if that is asked for.
    private(set) var deleted: [(number: Int64, previous: HistoryPlace)] = []

    /// Begins with a stretch of `rows`; `keepsTombstones`: deletes stay in any case, unless they are
    /// superseded; `namesOlder`: as in ``StretchRows``.
    init(_ index: Int, of rows: SweptRows, keepsTombstones: Bool, namesOlder: Bool = false) {
        self.index = index
        self.namesOlder = namesOlder
        stretch = rows.stretches[index]
        superseded = OrderedPlaces(stretch.superseded)
        dropsTombstones = !keepsTombstones && rows.mayDropTombstones(of: index)
        looksAtPlaces =
            !namesOlder && stretch.tombstoneCount == 0
            && stretch.byteCount <= Int64(stretch.rowCount) * StretchSweep.shortByteCount
        start = HistoryPlace(revision: stretch.first.revision, ordinal: stretch.first.ordinal - 1)
    }

    /// Deletes on in the transaction that is open.
    ///
    /// - Parameters:
    ///   - rows: Deletes.
    ///   - step: Takes the deletes that go.
    ///   - goesOn: Asked about every 128 rows, after 512 at most.
    /// - Returns: The number of rows that go.
    /// - Throws: What SQLite answered.
    mutating func deleteOn(
        _ rows: StretchRows,
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        let newest = try rows.finder.lastRow()?.number ?? 0
        if number == nil { number = try rows.finder.firstRow(after: start).map { $0.number - 1 } }
        let end = try lastNumber(rows, newest: newest)
        var count: Int64 = 0
        repeat {
            guard let first = number else {
                isAtEnd = true
                break
            }
            var last = min(first + stride, end)
            var isEmpty = true
            let columns: StretchRows.Columns = looksAtPlaces ? .places : .all
            count += try rows.delete(columns, after: first, through: last) { row in
                isEmpty = false
                return goes(row, newest, &step)
            }
            // Rows that are left of millions are far apart.
            if isEmpty {
                last = min(try rows.finder.firstNumber(from: last).map { $0 - 1 } ?? end, end)
            }
            number = last
            isAtEnd = isAtEnd || last >= end
        } while !isAtEnd && goesOn()
        return count
    }

    /// The number of its last row, which is searched for once: that takes as long as deleting a
    /// hundred rows.
    ///
    /// Rows behind it are not looked at: their values may be long.
    private mutating func lastNumber(
        _ rows: StretchRows,
        newest: Int64
    ) throws(SQLiteFailure) -> Int64 {
        if let end { return end }
        let next = try rows.finder.firstRow(after: stretch.last)
        let last = next.map { $0.number - 1 } ?? newest
        if let number {
            let average = (last - number) * 128 / Int64(max(1, stretch.rowCount))
            stride = min(max(128, average), StretchSweep.longestStride)
        }
        end = last
        return last
    }

    /// Looks at the next row: whether it goes, with the columns of ``StretchRows``.
    private mutating func goes(
        _ row: SQLiteColumns,
        _ newest: Int64,
        _ step: inout CompactionStep
    ) -> Bool {
        let found = HistoryPlace(
            revision: sqlite3_value_int64(row[1]),
            ordinal: Int32(truncatingIfNeeded: sqlite3_value_int64(row[2]))
        )
        let rowNumber = sqlite3_value_int64(row[0])
        // The newest row of all stays, so that its number is never given again.
        guard rowNumber < newest else {
            keep(row)
            isAtEnd = true
            return false
        }
        let isSuperseded =
            PackedPlace(found, after: stretch.first).map { superseded.has($0) } ?? false
        guard !looksAtPlaces else {
            if !isSuperseded { keep(row) }
            return isSuperseded
        }
        guard isSuperseded || dropsTombstones && StretchSweep.isTombstone(row) else {
            keep(row)
            return false
        }
        if StretchSweep.isTombstone(row) {
            let key = Bytes(
                start: sqlite3_value_blob(row[4]),
                count: Int(sqlite3_value_bytes(row[4]))
            )
            step.tombstones.append(
                CompactionStep.CompactedDelete(key: Array(key), revision: found.revision)
            )
        }
        if namesOlder { noteDeleted(row) }
        return true
    }

    private mutating func noteDeleted(_ row: SQLiteColumns) {
        let previous = HistoryPlace(
            revision: sqlite3_value_int64(row[5]),
            ordinal: Int32(truncatingIfNeeded: sqlite3_value_int64(row[6]))
        )
        if previous.revision > 0 { deleted.append((sqlite3_value_int64(row[0]), previous)) }
    }

    private mutating func keep(_ row: SQLiteColumns) {
        rowCount += 1
        guard !looksAtPlaces else {
            byteCount += stretch.byteCount / Int64(max(1, stretch.rowCount))
            return
        }
        byteCount += sqlite3_value_int64(row[3])
        if StretchSweep.isTombstone(row) { tombstoneCount += 1 }
    }

    private static func isTombstone(_ row: SQLiteColumns) -> Bool {
        sqlite3_value_type(row[4]) != SQLITE_NULL
    }
}

/// The statements of a sweep.
///
/// One statement looks at the rows and deletes those that go: a DELETE for each run of neighbours,
/// of which a stretch has a thousand, took 4 µs each.
struct StretchRows {
    let finder: RowFinder
    private let connection: SQLiteConnection
    /// Nil if those that each row supersedes are asked for: two filters of as many columns would
    /// be the same function.
    private let places: Delete?
    private let all: Delete

    /// What the statement looks at.
    enum Columns {
        /// Number, revision, ordinal: the columns behind them are not read.
        case places
        /// Those, then the length of the value, and the key of a delete.
        case all
    }

    private struct Delete {
        let filter: RowFilter
        let statement: SQLiteStatement

        /// `count`: how many columns the filter has in the statement.
        init(
            _ sql: String,
            count: Int32,
            _ connection: SQLiteConnection
        ) throws(SQLiteFailure) {
            filter = try RowFilter(connection, columnCount: count)
            statement = try connection.prepare(sql)
        }
    }

    /// `namesOlder`: the columns have the row that each row supersedes, too.
    init(
        _ connection: SQLiteConnection,
        _ finder: RowFinder,
        namesOlder: Bool = false
    ) throws(SQLiteFailure) {
        self.connection = connection
        self.finder = finder
        let places = """
            DELETE FROM history WHERE number>? AND number<=? AND \(RowFilter.name)(
                number, revision, ordinal)
            """
        let older = namesOlder ? ["previous_revision", "previous_ordinal"] : []
        let all = """
            DELETE FROM history WHERE number>? AND number<=? AND \(RowFilter.name)(
                number, revision, ordinal, length(value),
                CASE WHEN value IS NULL THEN key END\(older.map { ", " + $0 }.joined()))
            """
        self.places = namesOlder ? nil : try Delete(places, count: 3, connection)
        self.all = try Delete(all, count: namesOlder ? 7 : 5, connection)
    }

    /// Deletes those rows after the number `first` for which `goes` returns true.
    ///
    /// - Returns: How many.
    func delete(
        _ columns: Columns,
        after first: Int64,
        through last: Int64,
        where goes: (SQLiteColumns) -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        let delete = columns == .places ? places ?? all : all
        delete.statement.bind(1, first)
        delete.statement.bind(2, last)
        try delete.filter.run(delete.statement, goes)
        return connection.changeCount
    }
}

/// Places that are asked for in order.
struct OrderedPlaces {
    private let places: [PackedPlace]
    /// How many are before the last that was asked for.
    private var passedCount = 0

    init(_ places: [PackedPlace]) { self.places = places.sorted() }

    /// Whether a place is one of them; it is not before the last that was asked for.
    mutating func has(_ place: PackedPlace) -> Bool {
        while passedCount < places.count, places[passedCount] < place { passedCount += 1 }
        return passedCount < places.count && places[passedCount] == place
    }
}
