import StateEngine

/// The rows behind the compacted revision, in stretches of neighbours, and which of them are superseded.
///
/// Superseded rows lie scattered: a delete of each, as soon as the retention passes it, reads one page and writes two for
/// every SET. So they stay until half of a stretch is superseded, and its pages are then rewritten once: 27 rows a page in
/// place of one. A store has at most about twice the rows that it needs.
///
/// A tombstone is superseded from the start, but it must outlive every older row of its key, or the next start would take
/// the newest of those for the value. Which rows these are is not known: no index has the keys. So a tombstone goes once
/// each older stretch had no superseded row left at some moment after the tombstone was counted.
struct SweptRows {
    /// Neighbours, in order of their places.
    struct Stretch {
        let first: HistoryPlace
        var last: HistoryPlace
        var rowCount = 0
        var byteCount: Int64 = 0
        /// Deletes among the rows.
        var tombstoneCount = 0
        /// Superseded rows, in any order; some may be gone already.
        var superseded: [PackedPlace] = []
        /// The turn in which the newest of its rows was counted.
        var countedTurn = 0
        /// The turn in which the last superseded row had gone.
        var emptiedTurn = 0

        /// Whether sweeping it takes half of it.
        var isDue: Bool { !superseded.isEmpty && superseded.count * 2 >= rowCount }
        var hasAny: Bool { !superseded.isEmpty || tombstoneCount > 0 }
    }

    /// At most so many bytes of values, so that one long value is swept on its own.
    static let byteLimit: Int64 = 1 << 20

    /// At most so many rows in a stretch: 4,096 short values are 75 pages.
    private let rowLimit: Int
    private(set) var stretches: [Stretch] = []
    private(set) var rowCount = 0
    /// Superseded rows and tombstones.
    private(set) var supersededCount = 0
    /// One more after each range and each sweep.
    private var turn = 0

    init(rowLimit: Int) { self.rowLimit = rowLimit }

    /// Counts a row behind all others.
    mutating func append(_ place: HistoryPlace, byteCount: Int64, isTombstone: Bool) {
        if !(stretches.last.map { fits(place, $0) } ?? false) {
            stretches.append(Stretch(first: place, last: place))
        }
        let index = stretches.count - 1
        stretches[index].last = place
        stretches[index].rowCount += 1
        stretches[index].byteCount += byteCount
        stretches[index].countedTurn = turn
        if isTombstone { stretches[index].tombstoneCount += 1 }
        rowCount += 1
        if isTombstone { supersededCount += 1 }
    }

    private func fits(_ place: HistoryPlace, _ stretch: Stretch) -> Bool {
        stretch.rowCount < rowLimit && stretch.byteCount < SweptRows.byteLimit
            && PackedPlace(place, after: stretch.first) != nil
    }

    /// Notes that a row is superseded; one that is in no stretch is ignored.
    ///
    /// - Complexity: O(log *n*) in the stretches.
    mutating func supersede(_ place: HistoryPlace) {
        let index = stretches.partitioningIndex { $0.first > place } - 1
        guard index >= 0, place <= stretches[index].last,
            let packed = PackedPlace(place, after: stretches[index].first)
        else { return }
        stretches[index].superseded.append(packed)
        supersededCount += 1
    }

    /// Counts the next 1,024 rows that are left of a range, or of those that it supersedes.
    ///
    /// - Returns: Whether all of it is counted.
    mutating func count(_ plan: SweepPlan, _ cursor: inout SweepPlan.Cursor) -> Bool {
        if cursor.countedRow < plan.rows.count {
            let last = min(cursor.countedRow + 1_024, plan.rows.count)
            for row in plan.rows[cursor.countedRow..<last] where !row.isDead {
                append(row.place, byteCount: Int64(row.byteCount), isTombstone: row.isTombstone)
            }
            cursor.countedRow = last
        } else {
            let last = min(cursor.outside + 1_024, plan.outside.count)
            for place in plan.outside[cursor.outside..<last] { supersede(place) }
            cursor.outside = last
        }
        return cursor.countedRow == plan.rows.count && cursor.outside == plan.outside.count
    }

    /// Ends a turn: what is superseded from now on has nothing to do with the tombstones before.
    mutating func endTurn() { turn += 1 }

    /// The first stretch to be swept.
    ///
    /// - Parameter all: Whether any stretch with superseded rows is worth it.
    /// - Returns: Its index; nil if none is worth it.
    func next(all: Bool) -> Int? {
        guard !all else { return stretches.firstIndex(where: \.hasAny) }
        return stretches.firstIndex(where: \.isDue)
    }

    /// Whether superseded rows are half of all, though not in any one stretch: then all are swept, in order.
    var isHalfSuperseded: Bool {
        supersededCount >= rowLimit && supersededCount * 2 >= rowCount
    }

    /// Whether the tombstones of a stretch may go: none of their keys has an older row.
    func mayDropTombstones(of index: Int) -> Bool {
        let turn = stretches[index].countedTurn
        return stretches[..<index].allSatisfy { $0.superseded.isEmpty || $0.emptiedTurn > turn }
    }

    /// Takes over what a stretch has after it was swept.
    mutating func didSweep(_ sweep: StretchSweep) {
        var stretch = stretches[sweep.index]
        let tombstoneCount = stretch.tombstoneCount - sweep.tombstoneCount
        supersededCount -= stretch.superseded.count + tombstoneCount
        rowCount -= stretch.rowCount - sweep.rowCount
        turn += 1
        stretch.superseded = []
        stretch.rowCount = sweep.rowCount
        stretch.byteCount = sweep.byteCount
        stretch.tombstoneCount = sweep.tombstoneCount
        stretch.emptiedTurn = turn
        stretches[sweep.index] = stretch
        join(sweep.index)
    }

    /// Joins a stretch with the one before it, if both are together as long as one may be.
    private mutating func join(_ index: Int) {
        let stretch = stretches[index]
        guard stretch.rowCount > 0 else {
            stretches.remove(at: index)
            return
        }
        guard index > 0 else { return }
        let before = stretches[index - 1]
        guard before.rowCount + stretch.rowCount <= rowLimit / 2,
            before.byteCount + stretch.byteCount <= SweptRows.byteLimit / 2,
            PackedPlace(stretch.last, after: before.first) != nil
        else { return }
        stretches[index - 1].last = stretch.last
        stretches[index - 1].rowCount += stretch.rowCount
        stretches[index - 1].byteCount += stretch.byteCount
        stretches[index - 1].tombstoneCount += stretch.tombstoneCount
        stretches[index - 1].countedTurn = max(before.countedTurn, stretch.countedTurn)
        stretches[index - 1].emptiedTurn = min(before.emptiedTurn, stretch.emptiedTurn)
        stretches.remove(at: index)
    }
}

/// A place in 8 bytes, relative to one before it.
struct PackedPlace: Hashable, Comparable {
    private let bits: UInt64

    /// Nil if it is too far away: 2^40 revisions, or an ordinal of 2^24.
    init?(_ place: HistoryPlace, after first: HistoryPlace) {
        let distance = place.revision - first.revision
        guard distance >= 0, distance < 1 << 40, place.ordinal >= 0, place.ordinal < 1 << 24 else {
            return nil
        }
        bits = UInt64(distance) << 24 | UInt64(place.ordinal)
    }

    static func < (left: PackedPlace, right: PackedPlace) -> Bool { left.bits < right.bits }
}
