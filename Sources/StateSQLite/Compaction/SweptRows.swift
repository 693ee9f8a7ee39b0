import StateEngine

/// The rows behind the compacted revision, in stretches of neighbours, and which of them are
/// superseded.
///
/// Superseded rows are scattered: to delete each at once reads one page and writes two for every
/// SET. So they wait until three quarters of a stretch are superseded, and its pages are then
/// rewritten once. At half, no page would become free: SQLite joins pages that are less than a
/// third full. If half of all rows are superseded, the stretch with the greatest share is swept
/// earlier: a store has at most about twice the rows that it needs.
///
/// A tombstone is superseded from the start, but it must outlive every older row of its key, or the
/// next start would take the newest of those for the value. No index has the keys. So a tombstone
/// goes once each older stretch had no superseded row left at some moment after it was counted.
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
        /// About how long their values are.
        var supersededByteCount: Int64 = 0
        /// The turn in which the newest of its rows was counted.
        var countedTurn = 0
        /// The turn in which the last superseded row had gone.
        var emptiedTurn = 0

        /// Whether sweeping it takes most of it.
        var isDue: Bool {
            !superseded.isEmpty
                && Share(
                    rowCount: rowCount,
                    byteCount: byteCount,
                    supersededCount: superseded.count,
                    supersededByteCount: supersededByteCount
                ).isMost
        }
        /// Whether a smaller share of its rows is superseded.
        func isLessSuperseded(than other: Stretch) -> Bool {
            superseded.count * other.rowCount < other.superseded.count * rowCount
        }

        var hasAny: Bool { !superseded.isEmpty || tombstoneCount > 0 }
    }

    /// How much of a stretch is superseded.
    struct Share {
        var rowCount = 0
        var byteCount: Int64 = 0
        var supersededCount = 0
        var supersededByteCount: Int64 = 0

        mutating func count(_ size: Int, isSuperseded: Bool) {
            rowCount += 1
            byteCount += Int64(size)
            guard isSuperseded else { return }
            supersededCount += 1
            supersededByteCount += Int64(size)
        }

        /// Whether three quarters are superseded, or half of the bytes if these values are long.
        ///
        /// Long values have pages of their own, which become free without being written.
        var isMost: Bool {
            if supersededCount * 4 >= rowCount * 3 { return true }
            guard byteCount >= SweptRows.longByteCount else { return false }
            let isLong = supersededByteCount >= Int64(supersededCount) * 2_048
            return isLong
                ? supersededByteCount * 2 >= byteCount : supersededByteCount * 4 >= byteCount * 3
        }
    }

    /// At most so many bytes of values, so that one long value is swept on its own.
    static let byteLimit: Int64 = 1 << 20
    /// From so many bytes on, a stretch is also swept for its superseded bytes.
    static let longByteCount: Int64 = 64 << 10

    /// At most so many rows in a stretch: 4,096 short values are 75 pages.
    let rowLimit: Int
    private(set) var stretches: [Stretch] = []
    private(set) var rowCount = 0
    private(set) var supersededCount = 0
    private(set) var tombstoneCount = 0
    /// How many tombstones the last pass left.
    private(set) var heldCount = 0
    /// Rows that nothing has superseded.
    var neededCount: Int { rowCount - supersededCount }
    /// Stretches that are due.
    private(set) var dueCount = 0
    /// While all stretches are swept, in order: the end of the last one.
    private(set) var pass: HistoryPlace?
    /// One more after each range and each sweep.
    private var turn = 0

    init(rowLimit: Int) { self.rowLimit = rowLimit }

    /// Counts a row behind all others.
    mutating func append(_ place: HistoryPlace, byteCount: Int64, isTombstone: Bool) {
        if !(stretches.last.map { fits(place, $0) } ?? false) {
            stretches.append(Stretch(first: place, last: place))
        }
        change(stretches.count - 1) { [turn] stretch in
            stretch.last = place
            stretch.rowCount += 1
            stretch.byteCount += byteCount
            stretch.countedTurn = turn
            if isTombstone { stretch.tombstoneCount += 1 }
        }
        rowCount += 1
        if isTombstone { tombstoneCount += 1 }
    }

    private func fits(_ place: HistoryPlace, _ stretch: Stretch) -> Bool {
        stretch.rowCount < rowLimit && stretch.byteCount < SweptRows.byteLimit
            && PackedPlace(place, after: stretch.first) != nil
    }

    /// Records that a row is superseded; one that is in no stretch is ignored.
    ///
    /// - Parameters:
    ///   - place: The row's.
    ///   - byteCount: About the bytes of its value; 0 if they are unknown.
    /// - Complexity: O(log *n*) in the stretches.
    mutating func supersede(_ place: HistoryPlace, byteCount: Int64) {
        let index = stretches.partitioningIndex { $0.first > place } - 1
        guard index >= 0, place <= stretches[index].last,
            let packed = PackedPlace(place, after: stretches[index].first)
        else { return }
        change(index) {
            $0.superseded.append(packed)
            // The row that deletes a value has none.
            let isKnown = byteCount > 0
            $0.supersededByteCount += isKnown ? byteCount : $0.byteCount / Int64($0.rowCount)
        }
        supersededCount += 1
    }

    /// Changes a stretch, and counts those that are due.
    private mutating func change(_ index: Int, _ body: (inout Stretch) -> Void) {
        if stretches[index].isDue { dueCount -= 1 }
        body(&stretches[index])
        if stretches[index].isDue { dueCount += 1 }
    }

    /// Counts the next 512 rows that are left of a range, or of those that it supersedes.
    ///
    /// - Returns: Whether all of it is counted.
    mutating func count(_ plan: SweepPlan, _ cursor: inout SweepPlan.Cursor) -> Bool {
        if cursor.countedRow < plan.rows.count {
            let last = min(cursor.countedRow + 512, plan.rows.count)
            for row in plan.rows[cursor.countedRow..<last] where !row.isDead {
                let byteCount = Int64(row.byteCount)
                append(row.place, byteCount: byteCount, isTombstone: row.isTombstone)
                if row.isSuperseded { supersede(row.place, byteCount: byteCount) }
            }
            cursor.countedRow = last
        } else {
            let last = min(cursor.outside + 512, plan.outside.count)
            for row in plan.outside[cursor.outside..<last] {
                supersede(row.place, byteCount: Int64(row.byteCount))
            }
            cursor.outside = last
        }
        return cursor.countedRow == plan.rows.count && cursor.outside == plan.outside.count
    }

    /// Ends a turn: what is superseded from now on has nothing to do with the tombstones before.
    mutating func endTurn() { turn += 1 }

    /// Sweeps all stretches from now on, once and in order.
    mutating func beginPass() { pass = .end(of: 0) }

    /// The stretch to be swept next; nil if none is due.
    ///
    /// - Complexity: O(*n*) in the stretches.
    mutating func next() -> Int? {
        if pass == nil, hasManyTombstones { beginPass() }
        if let pass {
            if let next = stretches.firstIndex(where: { $0.first > pass && $0.hasAny }) {
                return next
            }
            heldCount = tombstoneCount
            self.pass = nil
        }
        if dueCount > 0 { return stretches.firstIndex(where: \.isDue) }
        guard isHalfSuperseded else { return nil }
        return stretches.indices.max { stretches[$0].isLessSuperseded(than: stretches[$1]) }
    }

    /// Drops the rows up to a place.
    mutating func drop(through place: HistoryPlace) {
        let count = stretches.partitioningIndex { $0.last > place }
        for stretch in stretches[..<count] {
            rowCount -= stretch.rowCount
            supersededCount -= stretch.superseded.count
            tombstoneCount -= stretch.tombstoneCount
            if stretch.isDue { dueCount -= 1 }
        }
        stretches.removeFirst(count)
        guard let first = stretches.first?.first, first <= place else { return }
        // Its rows up to the place stay counted, which does no harm.
        let limit = PackedPlace(place, after: first)
        let kept = stretches[0].superseded.filter { $0 > limit ?? $0 }
        let oldCount = stretches[0].superseded.count
        supersededCount -= oldCount - kept.count
        change(0) {
            $0.superseded = kept
            $0.supersededByteCount =
                oldCount == 0
                ? 0 : $0.supersededByteCount * Int64(kept.count) / Int64(oldCount)
        }
    }

    /// Whether the tombstones of a stretch may go: none of their keys has an older row.
    func mayDropTombstones(of index: Int) -> Bool {
        let turn = stretches[index].countedTurn
        return stretches[..<index].allSatisfy { $0.superseded.isEmpty || $0.emptiedTurn > turn }
    }

    /// Takes over what a stretch has after it was swept.
    mutating func didSweep(_ sweep: StretchSweep) {
        let stretch = stretches[sweep.index]
        supersededCount -= stretch.superseded.count
        tombstoneCount -= stretch.tombstoneCount - sweep.tombstoneCount
        heldCount = min(heldCount, tombstoneCount)
        rowCount -= stretch.rowCount - sweep.rowCount
        turn += 1
        if let last = pass { pass = max(last, stretch.last) }
        change(sweep.index) { [turn] stretch in
            stretch.superseded = []
            stretch.supersededByteCount = 0
            stretch.rowCount = sweep.rowCount
            stretch.byteCount = sweep.byteCount
            stretch.tombstoneCount = sweep.tombstoneCount
            stretch.emptiedTurn = turn
        }
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
        change(index - 1) {
            $0.last = stretch.last
            $0.rowCount += stretch.rowCount
            $0.byteCount += stretch.byteCount
            $0.tombstoneCount += stretch.tombstoneCount
            $0.countedTurn = max($0.countedTurn, stretch.countedTurn)
            $0.emptiedTurn = min($0.emptiedTurn, stretch.emptiedTurn)
        }
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
