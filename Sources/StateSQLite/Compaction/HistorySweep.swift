import StateEngine

/// Takes superseded rows out of the history.
///
/// ```
/// stretches, each at most three quarters superseded ... compacted | complete ... newest
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

    /// The rows behind the compacted revision, as far as they are in memory.
    @exclusivity(unchecked) var retained: RetainedRows

    private let connection: SQLiteConnection
    private let metadata: StoreMetadata
    let statements: Statements

    struct Statements {
        let finder: RowFinder
        let scan: SQLiteStatement
        let deleteRun: SQLiteStatement
        let stretchRows: StretchRows
    }

    /// The range; nil between two.
    @exclusivity(unchecked) var plan: SweepPlan?
    @exclusivity(unchecked) var range = ReadRange()
    var cursor = SweepPlan.Cursor()
    /// The stretch that is swept.
    var stretch: StretchSweep?
    /// What is taken back if a transaction fails.
    private var before: (cursor: SweepPlan.Cursor, stretch: StretchSweep?, compacted: Int64)?

    /// How far the range was read.
    struct ReadRange {
        /// What it goes up to at most.
        var target: Int64 = 0
        /// Numbers below this were read.
        var nextNumber: Int64 = 0
        /// Where that is in memory.
        var cursor = RetainedRows.Cursor()
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
        retained = loaded.retained
        retained.begin(behind: try finder.lastRow())
        ruled = try RuleSweep(connection, finder, loaded)
        statements = Statements(
            finder: finder,
            scan: try connection.prepare(
                """
                SELECT number, revision, ordinal, previous_revision, previous_ordinal,
                    length(value), CASE WHEN value IS NULL THEN key END
                FROM history WHERE number>=? AND number<? ORDER BY number
                """
            ),
            deleteRun: try connection.prepare("DELETE FROM history WHERE number BETWEEN ? AND ?"),
            stretchRows: try StretchRows(connection, finder)
        )
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
            retained.drop(before: range.nextNumber)
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
