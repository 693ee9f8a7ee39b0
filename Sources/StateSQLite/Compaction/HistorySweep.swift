import StateEngine

/// Takes superseded rows out of the history, range by range.
///
/// ```
/// live rows only ... swept | the range: any part of what is superseded may be gone ... compacted | whole ... newest
/// ```
///
/// A range is read first, without a transaction. The first transaction that deletes any of it says in `meta` that the history is
/// whole from its end on; from then on what is superseded in it is no use to anybody, and any part of it may be gone. What lies
/// before the range goes first and then the range from its beginning, so that no delete goes before what it had deleted. After
/// the last row `meta` says that the range is swept; a start reads one again that was not.
///
/// The newest row of all stays, so that its number is never given again: who reads on by number would miss rows.
final class HistorySweep {
    /// From here on the history is whole, as `meta` has it.
    private(set) var compacted: Int64
    /// Up to here everything superseded is gone.
    private var swept: HistoryPlace

    private let connection: SQLiteConnection
    private let metadata: StoreMetadata
    private let finder: RowFinder
    private let scan: SQLiteStatement
    private let deleteRun: SQLiteStatement
    private let deleteOne: SQLiteStatement

    /// The range; nil between two.
    private var plan: SweepPlan?
    /// What the range goes up to at most.
    private var target: Int64 = 0
    /// Numbers below this were read.
    private var nextNumber: Int64 = 0
    /// Where the range ends: nil while it is read.
    private var end: End?
    private var cursor = Cursor()
    /// Where the last row outside was found, from which the next is guessed.
    private var found: FoundRow?
    /// What is taken back where a transaction fails.
    private var before: (cursor: Cursor, compacted: Int64)?

    private struct End {
        /// Swept up to here, once all of it is deleted.
        var swept: HistoryPlace
        /// From here on the history is whole.
        var compacted: Int64
    }

    /// What of the plan was deleted.
    private struct Cursor {
        var outside = 0
        var row = 0
        var tombstone = 0
        var isAnnounced = false
        var isAtEnd = false
    }

    /// Begins where `meta` says that it ended.
    init(_ connection: SQLiteConnection) throws {
        self.connection = connection
        metadata = StoreMetadata(connection)
        compacted = try metadata.required(.compacted)
        swept = .end(of: try metadata.number(of: .swept) ?? compacted)
        finder = try RowFinder(connection)
        deleteRun = try connection.prepare("DELETE FROM history WHERE number BETWEEN ? AND ?")
        deleteOne = try connection.prepare(
            "DELETE FROM history WHERE number=? AND revision=? AND ordinal=?"
        )
        scan = try connection.prepare(
            """
            SELECT number, revision, ordinal, previous_revision, previous_ordinal, length(value),
                CASE WHEN value IS NULL THEN key END
            FROM history WHERE number>=? AND number<? ORDER BY number
            """
        )
    }

    /// Whether a range is under way.
    var isSweeping: Bool { plan != nil }

    /// All of it is swept for certain: of a transaction that a range ended in, the rest may not be.
    var sweptRevision: Int64 { HistorySweep.revision(of: swept) }

    private static func revision(of place: HistoryPlace) -> Int64 {
        place.ordinal == .max ? place.revision : max(0, place.revision - 1)
    }

    // MARK: Reading a range

    /// Reads on in the range that is to be swept next.
    ///
    /// - Parameters:
    ///   - revision: What it goes up to at most.
    ///   - goesOn: Asked every 256 rows.
    /// - Returns: Whether it is read and can be deleted; nil where there is nothing left up to `revision`.
    /// - Throws: What SQLite answered; it can be called again.
    /// - Complexity: O(*n*) in the rows, 0.2 µs each.
    func readRange(
        through revision: Int64,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Bool? {
        if plan == nil, try !beginRange(through: revision) { return nil }
        guard end == nil else { return true }
        let newest = try finder.lastRow()
        repeat {
            guard let newest, nextNumber < newest.number else {
                let isAll = (newest?.place.revision ?? .max) > target
                let place = isAll ? .end(of: target) : plan?.rows.last?.place ?? swept
                end = End(swept: place, compacted: target)
                break
            }
            try readRows(before: min(nextNumber + 256, newest.number))
        } while end == nil && goesOn()
        guard end != nil else { return false }
        plan?.finish()
        return true
    }

    /// - Returns: Whether there is anything to delete or to announce.
    private func beginRange(through revision: Int64) throws(SQLiteFailure) -> Bool {
        guard swept < .end(of: revision) else { return false }
        let first = try finder.firstRow(after: swept)
        let newest = try finder.lastRow()
        let isEmpty =
            first.map { $0.place.revision > revision || $0.number >= newest?.number ?? 0 } ?? true
        guard !isEmpty || revision > compacted else { return false }
        plan = SweepPlan()
        target = revision
        nextNumber = first?.number ?? .max
        (end, cursor, found) = (nil, Cursor(), nil)
        return true
    }

    private func readRows(before number: Int64) throws(SQLiteFailure) {
        scan.bind(1, nextNumber)
        scan.bind(2, number)
        defer { scan.reset() }
        var byteCount: Int64 = 0
        while try scan.step() {
            let place = HistoryPlace(
                revision: scan.number(at: 1),
                ordinal: Int32(truncatingIfNeeded: scan.number(at: 2))
            )
            guard place.revision <= target else {
                end = End(swept: .end(of: target), compacted: target)
                return
            }
            let size = scan.number(at: 5)
            nextNumber = scan.number(at: 0) + 1
            plan?.append(
                SweepPlan.Row(number: nextNumber - 1, place: place, byteCount: size),
                previous: HistoryPlace(
                    revision: scan.number(at: 3),
                    ordinal: Int32(truncatingIfNeeded: scan.number(at: 4))
                ),
                deletedKey: scan.bytes(at: 6)
            )
            if plan?.isFull ?? true {
                end = End(swept: place, compacted: place.revision)
                return
            }
            // The columns behind a long value are far away.
            byteCount += size
            if byteCount > 1 << 20 { return }
        }
        nextNumber = number
    }

    // MARK: Deleting it

    /// Deletes on in the range that was read, in the transaction that is open; then comes ``didCommit()`` or
    /// ``didFail()``.
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
        guard let plan, let end else { return 0 }
        before = (cursor, compacted)
        if !cursor.isAnnounced { try announce(end) }
        var count: Int64 = 0
        // Order matters: what a delete superseded goes before it, or a start would find it alive.
        repeat {
            if cursor.outside < plan.outside.count {
                count += try delete(plan.outside[cursor.outside])
                cursor.outside += 1
            } else {
                count += try deleteNextRun(plan.rows)
                cursor.isAtEnd = cursor.row == plan.rows.count
            }
        } while !cursor.isAtEnd && goesOn()
        takeTombstones(plan, &step)
        if cursor.isAtEnd { try metadata.set(.swept, "\(HistorySweep.revision(of: end.swept))") }
        step.compacted = compacted
        return count
    }

    /// Says in `meta` that less is offered from now on.
    private func announce(_ end: End) throws(SQLiteFailure) {
        cursor.isAnnounced = true
        guard end.compacted > compacted else { return }
        try metadata.set(.swept, "\(sweptRevision)")
        try metadata.set(.compacted, "\(end.compacted)")
        compacted = end.compacted
    }

    /// The same up to `revision`, and at least as far as it was said before, in the transaction that is open.
    func write(compacted revision: Int64) throws(SQLiteFailure) {
        try metadata.set(.swept, "\(sweptRevision)")
        try metadata.set(.compacted, "\(max(revision, compacted))")
        compacted = max(revision, compacted)
    }

    private func takeTombstones(_ plan: SweepPlan, _ step: inout CompactionStep) {
        while cursor.tombstone < plan.tombstones.count,
            plan.tombstones[cursor.tombstone].row < cursor.row
        {
            let tombstone = plan.tombstones[cursor.tombstone]
            let revision = plan.rows[tombstone.row].place.revision
            step.graves.append(
                CompactionStep.CompactedDelete(key: tombstone.key, revision: revision)
            )
            cursor.tombstone += 1
        }
    }

    /// Rows that lie side by side, so many that it takes a fraction of a millisecond.
    private func deleteNextRun(_ rows: [SweepPlan.Row]) throws(SQLiteFailure) -> Int64 {
        while cursor.row < rows.count, !rows[cursor.row].isDead { cursor.row += 1 }
        let first = cursor.row
        var byteCount = 0
        while cursor.row < rows.count, rows[cursor.row].isDead, cursor.row - first < 256,
            byteCount < 256 << 10
        {
            byteCount += rows[cursor.row].byteCount
            cursor.row += 1
        }
        guard cursor.row > first else { return 0 }
        deleteRun.bind(1, rows[first].number)
        deleteRun.bind(2, rows[cursor.row - 1].number)
        try deleteRun.run()
        return connection.changeCount
    }

    /// One row before the range; it may be gone.
    private func delete(_ place: HistoryPlace) throws(SQLiteFailure) -> Int64 {
        if let found {
            // Where each commit has one change, numbers rise as revisions do.
            let isNear = place.revision == found.place.revision
            let offset =
                isNear
                ? Int64(place.ordinal - found.place.ordinal) : place.revision - found.place.revision
            let guess = found.number + offset
            if try delete(FoundRow(number: guess, place: place)) { return 1 }
        }
        let before = HistoryPlace(revision: place.revision, ordinal: place.ordinal - 1)
        guard let row = try finder.firstRow(after: before), row.place == place else { return 0 }
        return try delete(row) ? 1 : 0
    }

    private func delete(_ row: FoundRow) throws(SQLiteFailure) -> Bool {
        deleteOne.bind(1, row.number)
        deleteOne.bind(2, row.place.revision)
        deleteOne.bind(3, Int64(row.place.ordinal))
        try deleteOne.run()
        guard connection.changeCount > 0 else { return false }
        found = row
        return true
    }

    // MARK: The transaction's end

    /// What was deleted is gone for good.
    func didCommit() {
        before = nil
        guard cursor.isAtEnd, let end else { return }
        swept = end.swept
        plan = nil
    }

    /// Nothing of the transaction happened.
    func didFail() {
        guard let before else { return }
        (cursor, compacted) = before
        self.before = nil
        found = nil
    }
}
