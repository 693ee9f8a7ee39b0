import StateEngine

/// Takes superseded rows out of the history.
///
/// ```
/// stretches, each at most about half superseded ... compacted | complete ... newest
/// ```
///
/// What the retention passes is taken in ranges. A range is read first, without a transaction. The
/// first transaction that deletes any of it records in `meta` that the history is complete from its
/// end on. Where most rows are superseded within the range, these go at once; the rest joins
/// ``SweptRows``.
///
/// No tombstone goes before an older row of its key, or the next start would take that row for the
/// value. The newest row of all stays, so that its number is never used again: a reader that
/// continues by number would miss rows.
final class HistorySweep {
    /// From here on the history is complete, as `meta` has it.
    private(set) var compacted: Int64
    /// Up to here rows are in stretches.
    private(set) var counted: HistoryPlace
    /// The rows up to there.
    var rows: SweptRows
    /// The rows behind it that rules do not keep.
    let ruled: RuleSweep
    /// Whether `rows` knows of all that is superseded: not after the store was reopened.
    let isComplete: Bool
    /// Whether all stretches are to be swept once there is no range left.
    var sweepsAll = false

    private let connection: SQLiteConnection
    private let metadata: StoreMetadata
    private let statements: Statements
    let stretchRows: StretchRows

    private struct Statements {
        let finder: RowFinder
        let scan: SQLiteStatement
        let deleteRun: SQLiteStatement
    }

    /// The range; nil between two.
    private(set) var plan: SweepPlan?
    private var range = ReadRange()
    private var cursor = SweepPlan.Cursor()
    /// The stretch that is swept.
    var stretch: StretchSweep?
    /// What is taken back if a transaction fails.
    private var before: (cursor: SweepPlan.Cursor, stretch: StretchSweep?, compacted: Int64)?

    /// How far the range was read.
    private struct ReadRange {
        /// What it goes up to at most.
        var target: Int64 = 0
        /// Numbers below this were read.
        var nextNumber: Int64 = 0
        /// Where it ends: nil while it is read.
        var end: SweepPlan.End?
    }

    /// Begins with the rows that a load has found.
    ///
    /// - Throws: What SQLite answered.
    init(_ connection: SQLiteConnection, _ loaded: LoadedRows) throws {
        self.connection = connection
        metadata = StoreMetadata(connection)
        compacted = loaded.compacted
        counted = .end(of: compacted)
        rows = loaded.rows
        isComplete = loaded.isComplete
        let finder = try RowFinder(connection)
        ruled = try RuleSweep(connection, finder, loaded)
        stretchRows = try StretchRows(connection, finder)
        statements = Statements(
            finder: finder,
            scan: try connection.prepare(
                """
                SELECT number, revision, ordinal, previous_revision, previous_ordinal,
                    length(value), CASE WHEN value IS NULL THEN key END
                FROM history WHERE number>=? AND number<? ORDER BY number
                """
            ),
            deleteRun: try connection.prepare("DELETE FROM history WHERE number BETWEEN ? AND ?")
        )
    }

    // MARK: Reading a range

    /// Reads on in the range that is to be swept next.
    ///
    /// - Parameters:
    ///   - revision: What it goes up to at most.
    ///   - goesOn: Asked every 256 rows, and for each stretch that is decided.
    /// - Returns: Whether it is read and can be deleted; nil where there is nothing left up to
    ///   `revision`.
    /// - Throws: What SQLite answered; it can be called again.
    /// - Complexity: O(*n*) in the rows, 0.2 µs each.
    func readRange(
        through revision: Int64,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Bool? {
        if plan == nil, try !beginRange(through: revision) { return nil }
        guard range.end == nil else { return plan?.settle(while: goesOn) ?? true }
        let newest = try statements.finder.lastRow()
        repeat {
            guard let newest, range.nextNumber < newest.number else {
                let isAll = (newest?.place.revision ?? .max) > range.target
                let place = isAll ? .end(of: range.target) : plan?.rows.last?.place ?? counted
                range.end = SweepPlan.End(counted: place, compacted: range.target)
                break
            }
            try readRows(before: min(range.nextNumber + 256, newest.number))
        } while range.end == nil && goesOn()
        return range.end != nil && plan?.settle(while: goesOn) ?? true
    }

    /// - Returns: Whether there is anything to delete or to announce.
    private func beginRange(through revision: Int64) throws(SQLiteFailure) -> Bool {
        guard counted < .end(of: revision) else { return false }
        let first = try statements.finder.firstRow(after: counted)
        let newest = try statements.finder.lastRow()
        let isEmpty =
            first.map { $0.place.revision > revision || $0.number >= newest?.number ?? 0 } ?? true
        guard !isEmpty || revision > compacted else { return false }
        plan = SweepPlan(stretchRowCount: rows.rowLimit)
        ruled.beginHandover()
        range.target = revision
        range.nextNumber = first?.number ?? .max
        (range.end, cursor) = (nil, SweepPlan.Cursor())
        return true
    }

    private func readRows(before number: Int64) throws(SQLiteFailure) {
        statements.scan.bind(1, range.nextNumber)
        statements.scan.bind(2, number)
        defer { statements.scan.reset() }
        var byteCount: Int64 = 0
        while try statements.scan.step() {
            let place = HistoryPlace(
                revision: statements.scan.number(at: 1),
                ordinal: Int32(truncatingIfNeeded: statements.scan.number(at: 2))
            )
            guard place.revision <= range.target else {
                range.end = SweepPlan.End(counted: .end(of: range.target), compacted: range.target)
                return
            }
            let size = statements.scan.number(at: 5)
            range.nextNumber = statements.scan.number(at: 0) + 1
            let deletedKey = statements.scan.bytes(at: 6)
            var row = SweepPlan.Row(
                number: range.nextNumber - 1,
                place: place,
                byteCount: size,
                isTombstone: deletedKey != nil
            )
            row.isSuperseded = ruled.isSuperseded(place)
            plan?.append(
                row,
                previous: HistoryPlace(
                    revision: statements.scan.number(at: 3),
                    ordinal: Int32(truncatingIfNeeded: statements.scan.number(at: 4))
                ),
                isDecided: ruled.blocks.isDecided(row.number),
                deletedKey: deletedKey
            )
            if plan?.isFull ?? true {
                range.end = SweepPlan.End(counted: place, compacted: place.revision)
                return
            }
            // The columns behind a long value are far away.
            byteCount += size
            if byteCount > 1 << 20 { return }
        }
        range.nextNumber = number
    }

    // MARK: Deleting it

    /// Deletes on in the range that was read, in the transaction that is open; then comes
    /// ``didCommit()`` or ``didFail()``.
    ///
    /// - Parameters:
    ///   - step: Takes the deletes that go.
    ///   - goesOn: Asked for each run of rows.
    /// - Returns: The number of rows that go.
    /// - Throws: What SQLite answered.
    func deleteRange(
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        guard let plan, let end = range.end else { return 0 }
        begin()
        if cursor.row == 0 { try write(compacted: end.compacted) }
        try ruled.writeFloors(above: compacted)
        var count: Int64 = 0
        // In order, so that what a delete superseded in the range goes before it.
        repeat {
            count += try deleteNextRun(plan)
            cursor.isDeleted = cursor.row == plan.rows.count
        } while !cursor.isDeleted && goesOn()
        takeTombstones(plan, &step)
        step.compacted = compacted
        return count
    }

    /// Records in `meta` that the history is complete from `revision` on, or from a later one, in
    /// the transaction that is open.
    func write(compacted revision: Int64) throws(SQLiteFailure) {
        try metadata.set(.compacted, "\(max(revision, compacted))")
        compacted = max(revision, compacted)
    }

    private func takeTombstones(_ plan: SweepPlan, _ step: inout CompactionStep) {
        while cursor.tombstone < plan.tombstones.count,
            plan.tombstones[cursor.tombstone].row < cursor.row
        {
            let tombstone = plan.tombstones[cursor.tombstone]
            let revision = plan.rows[tombstone.row].place.revision
            step.tombstones.append(
                CompactionStep.CompactedDelete(key: tombstone.key, revision: revision)
            )
            cursor.tombstone += 1
        }
    }

    /// Rows that lie side by side, so many that it takes a fraction of a millisecond.
    private func deleteNextRun(_ plan: SweepPlan) throws(SQLiteFailure) -> Int64 {
        let (rows, first) = (plan.rows, plan.firstDead(from: cursor.row))
        var next = first
        var byteCount = 0
        while next < rows.count, rows[next].isDead, next - first < 256, byteCount < 256 << 10 {
            byteCount += rows[next].byteCount
            next += 1
        }
        cursor.row = next
        guard next > first else { return 0 }
        statements.deleteRun.bind(1, rows[first].number)
        statements.deleteRun.bind(2, rows[cursor.row - 1].number)
        try statements.deleteRun.run()
        return connection.changeCount
    }

    // MARK: Counting it

    /// Whether the range is deleted, and its rows are to be counted.
    var isCounting: Bool { cursor.isDeleted && plan != nil }

    /// Hands what is left of the range to the stretches, in memory.
    func countRange(while goesOn: () -> Bool) {
        guard let plan, let end = range.end else { return }
        repeat {
            guard rows.count(plan, &cursor) else { continue }
            rows.endTurn()
            counted = end.counted
            ruled.drop(through: counted, before: range.nextNumber)
            self.plan = nil
            return
        } while goesOn()
    }

    // MARK: The transaction's end

    /// Begins what ``didFail()`` takes back.
    func begin() {
        before = (cursor, stretch, compacted)
        ruled.begin()
    }

    /// What was deleted is gone.
    func didCommit() {
        before = nil
        ruled.didCommit(&rows, after: counted)
        guard let stretch, stretch.isAtEnd else { return }
        rows.didSweep(stretch)
        self.stretch = nil
    }

    /// Nothing of the transaction happened.
    func didFail() {
        ruled.didFail()
        guard let before else { return }
        (cursor, stretch, compacted) = before
        self.before = nil
    }
}
