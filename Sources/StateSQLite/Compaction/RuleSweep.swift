import StateEngine

/// Takes rows out of the history that rules do not keep, though the retention does.
///
/// ```
/// stretches | compacted ... stretches of the rules ... read | newest
/// ```
///
/// A row decides about the one that it supersedes: that is dead at once, at an age, or once so many
/// versions of the key have come since. So the rows behind the compacted revision are read once
/// more, after they were written, in order, and a block of them again if it had to wait
/// (``RuleBlocks``). What is dead waits in stretches until most of a stretch is, as everything does
/// (``SweptRows``); no row is deleted on its own. Where the compacted revision comes, the rows and
/// what is dead among them go over to ``HistorySweep``.
///
/// Live rows and tombstones stay. What is deleted raises the ``HistoryFloors`` in the same
/// transaction.
final class RuleSweep {
    /// The rows that were read, and which of them are dead.
    private(set) var rows: SweptRows
    private(set) var blocks = RuleBlocks()
    private(set) var floors: HistoryFloors
    /// The floors in `meta`.
    private var writtenFloors: HistoryFloors
    private(set) var rules: HistoryRules?
    /// Whether somebody asks for all that is dead to go now.
    var isAsked = false
    private var awaitsPass = false

    private let finder: RowFinder
    private let reader: RuledRowReader
    private let stretchRows: StretchRows
    private let metadata: MetadataWriter

    /// The last row that was read.
    private var read: FoundRow
    private var progress: Progress

    /// How far the rows were looked at.
    private struct Progress {
        /// Dead rows whose superseding rows are gone, as a start finds them, in order.
        var orphans: [HistoryPlace]
        var walk = SupersededWalk()
        /// The numbers of a range that is being looked at, and of what is left of it.
        var looking: (range: ClosedRange<Int64>, next: Int64)?
        /// As ``HistoryCuts/end`` counts rows: how many were read, and when a block is due.
        var readRowCount: Int64 = 0
        var dueRowCount = Int64.max
    }

    private(set) var stretch: StretchSweep?
    private var before: (stretch: StretchSweep?, writtenFloors: HistoryFloors)?

    init(_ connection: SQLiteConnection, _ finder: RowFinder, _ loaded: LoadedRows) throws {
        floors = try StoreMetadata(connection).floors()
        writtenFloors = floors
        rows = SweptRows(rowLimit: loaded.rows.rowLimit)
        // Without rules, each row names the one before it.
        let highest = floors.highest
        progress = Progress(orphans: loaded.orphans.filter { $0.revision < highest }.sorted())
        read = FoundRow(number: 0, place: .end(of: loaded.compacted))
        self.finder = finder
        reader = try RuledRowReader(connection)
        stretchRows = try StretchRows(connection, finder, namesOlder: true)
        metadata = try MetadataWriter(connection)
    }

    /// Sets the rules, and how newest versions are looked up; what earlier rules did not keep stays
    /// dead.
    func keep(by new: HistoryRules?, _ versions: @autoclosure () -> NewestVersions?) {
        guard new !== rules else { return }
        rules = new
        reader.versions = versions()
        blocks.makeAllDue()
        progress.dueRowCount = 0
    }

    // MARK: What there is to do

    /// Rows that were not read yet, if there are rules.
    func unreadRowCount(of rowCount: Int64) -> Int64 {
        rules == nil ? 0 : max(0, rowCount - progress.readRowCount)
    }

    /// Whether a block or a stretch is due.
    func isDue(rowCount: Int64, time: Int64) -> Bool {
        stretch != nil || rows.isDue || awaitsPass
            || rules != nil && (progress.dueRowCount <= rowCount || blocks.dueTime <= time)
            || rules != nil && progress.looking != nil
    }

    // MARK: Looking at rows

    /// Looks at rows that were not read yet, then at blocks that are due.
    ///
    /// - Parameters:
    ///   - older: The rows up to the compacted revision.
    ///   - counted: The last of them.
    ///   - cuts: The ages of rows.
    ///   - time: The age of the history.
    ///   - goesOn: Asked every 1,024 rows.
    /// - Returns: Whether there was anything to do.
    /// - Throws: What SQLite answered; it can be called again.
    func look(
        _ older: inout SweptRows,
        after counted: HistoryPlace,
        _ cuts: HistoryCuts,
        at time: Int64,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Bool {
        takeRequest()
        guard let rules, let newest = try finder.lastRow() else { return beginPass() }
        try catchUp(with: counted, newest)
        var hasLooked = false
        while let (range, next) = nextRange(newest.number, time) {
            hasLooked = true
            let piece = try reader.read(next...range.upperBound, by: rules, blocks)
            add(piece.rows, after: counted)
            // Rows that are gone leave gaps, which may be longer than a piece.
            let end = min(piece.end, newest.number)
            read = FoundRow(number: max(read.number, end), place: read.place)
            decide(piece.candidates, &older, after: counted, cuts, at: time)
            progress.looking = piece.end < range.upperBound ? (range, piece.end + 1) : nil
            if progress.looking == nil { blocks.didLook(at: range, newest: newest.number) }
            guard goesOn() else { break }
        }
        progress.readRowCount = cuts.end.rowCount - (newest.number - read.number)
        let rest = blocks.dueNumber.subtractingReportingOverflow(newest.number).partialValue
        progress.dueRowCount = blocks.dueNumber == .max ? .max : cuts.end.rowCount + rest
        return hasLooked || beginPass()
    }

    private func takeRequest() {
        guard isAsked else { return }
        (isAsked, awaitsPass) = (false, true)
        blocks.makeAllDue()
    }

    private func beginPass() -> Bool {
        guard awaitsPass else { return false }
        awaitsPass = false
        guard rows.supersededCount > 0 else { return false }
        rows.beginPass()
        return true
    }

    /// The retention may have passed rows that were not read.
    private func catchUp(
        with counted: HistoryPlace,
        _ newest: FoundRow
    ) throws(SQLiteFailure) {
        guard read.number == 0 || read.place < counted else { return }
        let first = try finder.firstRow(after: counted)?.number ?? newest.number + 1
        read = FoundRow(number: max(read.number, first - 1), place: max(read.place, counted))
    }

    private func nextRange(
        _ newest: Int64,
        _ time: Int64
    ) -> (range: ClosedRange<Int64>, next: Int64)? {
        if let looking = progress.looking { return looking }
        if read.number < newest {
            let range = read.number + 1...min(newest, read.number + RuleBlocks.rowCount)
            progress.looking = (range, range.lowerBound)
        } else if let due = blocks.takeDue(newest: newest, time: time) {
            progress.looking = (due, due.lowerBound)
        }
        return progress.looking
    }

    /// Counts rows that are read for the first time.
    private func add(_ found: [RuledRow], after counted: HistoryPlace) {
        for row in found where row.number > read.number {
            read = FoundRow(number: row.number, place: row.place)
            blocks.add(row.number)
            guard row.place > counted else { continue }
            // Tombstones are not deleted here.
            rows.append(row.place, byteCount: row.byteCount, isTombstone: false)
            if isOrphan(row.place) { rows.supersede(row.place, byteCount: row.byteCount) }
        }
    }

    private func decide(
        _ candidates: [RuledRow.Candidate],
        _ older: inout SweptRows,
        after counted: HistoryPlace,
        _ cuts: HistoryCuts,
        at time: Int64
    ) {
        let ranks = reader.ranks(of: candidates)
        var highest: [Int: Int64] = [:]
        for (candidate, rank) in zip(candidates, ranks) where candidate.row.place > counted {
            let (row, kept) = (candidate.row, candidate.kept)
            let end = cuts.time(of: row.place.revision)
                .addingReportingOverflow(kept.ageMilliseconds)
            let isOld = !end.overflow && end.partialValue <= time
            guard isOld || rank >= kept.changeCount else {
                blocks.keep(
                    row.number,
                    until: end.overflow ? .max : end.partialValue,
                    isCounting: kept.changeCount < .max
                )
                continue
            }
            supersede(candidate.previous, row.number, row.byteCount, &older, after: counted)
            highest[kept.rule] = max(highest[kept.rule] ?? 0, row.place.revision)
        }
        guard let rules else { return }
        for (rule, revision) in highest {
            for pattern in rules.patterns(of: rule) { floors.raise(pattern, to: revision) }
        }
    }

    /// A row's predecessor is dead.
    private func supersede(
        _ place: HistoryPlace,
        _ number: Int64,
        _ byteCount: Int64,
        _ older: inout SweptRows,
        after counted: HistoryPlace
    ) {
        blocks.decide(number)
        if place <= counted {
            older.supersede(place, byteCount: byteCount)
        } else {
            rows.supersede(place, byteCount: byteCount)
        }
    }

    private func isOrphan(_ place: HistoryPlace) -> Bool {
        let index = progress.orphans.partitioningIndex { $0 >= place }
        return index < progress.orphans.count && progress.orphans[index] == place
    }

    // MARK: Deleting them

    /// Begins with the next stretch, if one is due.
    func beginStretch() -> Bool {
        if stretch == nil {
            stretch = rows.next().map {
                StretchSweep($0, of: rows, keepsTombstones: true, namesOlder: true)
            }
        }
        return stretch != nil
    }

    /// Begins what ``didFail()`` takes back.
    func begin() { before = (stretch, writtenFloors) }

    /// Writes the floors, if they are others, in the transaction that is open.
    func writeFloors(above compacted: Int64) throws(SQLiteFailure) {
        floors.drop(through: compacted)
        guard floors != writtenFloors else { return }
        try metadata.write(.historyFloors, floors.isEmpty ? nil : floors.text)
        writtenFloors = floors
    }

    /// Deletes on in the stretch, in the transaction that is open.
    func deleteStretch(
        _ step: inout CompactionStep,
        while goesOn: () -> Bool
    ) throws(SQLiteFailure) -> Int64 {
        try stretch?.deleteOn(stretchRows, &step, while: goesOn) ?? 0
    }

    /// What was deleted is gone: what it superseded is dead, too, if it is still there.
    func didCommit(_ older: inout SweptRows, after counted: HistoryPlace) {
        before = nil
        guard let stretch, stretch.isAtEnd else { return }
        rows.didSweep(stretch)
        self.stretch = nil
        for row in stretch.deleted where !blocks.isDecided(row.number) {
            supersede(row.previous, row.number, 0, &older, after: counted)
        }
    }

    /// Nothing of the transaction happened.
    func didFail() {
        guard let before else { return }
        (stretch, writtenFloors) = before
        self.before = nil
    }

    // MARK: Handing them over

    /// Begins to hand rows over, in order.
    func beginHandover() { progress.walk = SupersededWalk() }

    /// Whether a row is dead already.
    func isSuperseded(_ place: HistoryPlace) -> Bool {
        progress.walk.has(place, in: rows) || isOrphan(place)
    }

    /// Forgets the rows up to a place; the row after it has at least the number `number`.
    func drop(through place: HistoryPlace, before number: Int64) {
        rows.drop(through: place)
        blocks.drop(before: number)
        progress.orphans.removeFirst(progress.orphans.partitioningIndex { $0 > place })
    }
}
