import StateEngine

/// Takes superseded rows out of one stretch, in pieces.
struct StretchSweep {
    /// Which of ``SweptRows/stretches``.
    let index: Int
    private let stretch: SweptRows.Stretch
    private let superseded: [PackedPlace]
    private let dropsTombstones: Bool
    /// The last row that was looked at.
    private var place: HistoryPlace
    /// Its number, once there is one.
    private var number: Int64?

    // What stays.
    private(set) var rowCount = 0
    private(set) var byteCount: Int64 = 0
    private(set) var tombstoneCount = 0
    private(set) var isAtEnd = false

    /// Begins with a stretch of `rows`; `keepsTombstones`: deletes stay in any case.
    init(_ index: Int, of rows: SweptRows, keepsTombstones: Bool) {
        self.index = index
        stretch = rows.stretches[index]
        superseded = stretch.superseded.sorted()
        dropsTombstones = !keepsTombstones && rows.mayDropTombstones(of: index)
        place = HistoryPlace(revision: stretch.first.revision, ordinal: stretch.first.ordinal - 1)
    }

    /// Deletes on in the transaction that is open.
    ///
    /// - Parameters:
    ///   - rows: Reads and deletes.
    ///   - step: Takes the deletes that go.
    ///   - goesOn: Asked every 256 rows.
    /// - Returns: The number of rows that go.
    /// - Throws: What SQLite answered.
    mutating func deleteOn(
        _ rows: StretchRows,
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        guard let newest = try rows.finder.lastRow() else {
            isAtEnd = true
            return 0
        }
        if number == nil { number = try rows.finder.firstRow(after: place).map { $0.number - 1 } }
        var count: Int64 = 0
        repeat {
            let read = try readRows(rows, newest, &step)
            count += try rows.delete(read)
        } while !isAtEnd && goesOn()
        return count
    }

    /// Reads on; the numbers of the rows that go, in runs.
    private mutating func readRows(
        _ rows: StretchRows,
        _ newest: FoundRow,
        _ step: inout CompactionStep
    ) throws(SQLiteFailure) -> [ClosedRange<Int64>] {
        guard let first = number else {
            isAtEnd = true
            return []
        }
        var runs: [ClosedRange<Int64>] = []
        var isInRun = false
        var readCount = 0
        let scan = rows.scan
        scan.bind(1, first + 1)
        defer { scan.reset() }
        while try scan.step() {
            readCount += 1
            let found = HistoryPlace(
                revision: scan.number(at: 1),
                ordinal: Int32(truncatingIfNeeded: scan.number(at: 2))
            )
            // The newest row of all stays, so that its number is never given again.
            guard found <= stretch.last, scan.number(at: 0) < newest.number else {
                if found <= stretch.last { keep(scan) }
                isAtEnd = true
                return runs
            }
            number = scan.number(at: 0)
            place = found
            guard goes(found, scan, &step) else {
                keep(scan)
                isInRun = false
                continue
            }
            let row = scan.number(at: 0)
            if isInRun, let run = runs.last {
                runs[runs.count - 1] = run.lowerBound...row
            } else {
                runs.append(row...row)
            }
            isInRun = true
        }
        isAtEnd = readCount < StretchRows.readCount
        return runs
    }

    private func goes(
        _ place: HistoryPlace,
        _ row: SQLiteStatement,
        _ step: inout CompactionStep
    ) -> Bool {
        let packed = PackedPlace(place, after: stretch.first)
        let isSuperseded = packed.map { superseded.containsSorted($0) } ?? false
        guard let key = row.bytes(at: 4) else { return isSuperseded }
        guard isSuperseded || dropsTombstones else { return false }
        step.tombstones.append(
            CompactionStep.CompactedDelete(key: Array(key), revision: place.revision)
        )
        return true
    }

    private mutating func keep(_ row: SQLiteStatement) {
        rowCount += 1
        byteCount += row.number(at: 3)
        if row.bytes(at: 4) != nil { tombstoneCount += 1 }
    }
}

/// The statements of a sweep.
struct StretchRows {
    /// So many rows are read before any is deleted.
    static let readCount = 256

    let finder: RowFinder
    let scan: SQLiteStatement
    private let deleteRun: SQLiteStatement
    private let connection: SQLiteConnection

    init(
        _ connection: SQLiteConnection,
        _ finder: RowFinder,
        _ deleteRun: SQLiteStatement
    ) throws(SQLiteFailure) {
        self.connection = connection
        self.finder = finder
        self.deleteRun = deleteRun
        scan = try connection.prepare(
            """
            SELECT number, revision, ordinal, length(value), CASE WHEN value IS NULL THEN key END
            FROM history WHERE number>=? ORDER BY number LIMIT \(StretchRows.readCount)
            """
        )
    }

    func delete(_ runs: [ClosedRange<Int64>]) throws(SQLiteFailure) -> Int64 {
        var count: Int64 = 0
        for run in runs {
            deleteRun.bind(1, run.lowerBound)
            deleteRun.bind(2, run.upperBound)
            try deleteRun.run()
            count += connection.changeCount
        }
        return count
    }
}

extension [PackedPlace] {
    /// Whether a sorted array has `element`.
    fileprivate func containsSorted(_ element: PackedPlace) -> Bool {
        let index = partitioningIndex { $0 >= element }
        return index < count && self[index] == element
    }
}
