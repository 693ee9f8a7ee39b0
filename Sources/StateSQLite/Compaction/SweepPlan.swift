import StateEngine

/// The superseded rows of one range of the history.
///
/// Often most rows of a range are superseded within it: of a thousand keys that are overwritten all
/// the time, all but the last thousand. So a range is read first, and such rows are deleted in runs:
/// 0.3 µs a row instead of 10 µs for a search for each row. Where few rows of a stretch are
/// superseded, and for rows before the range, that is left to ``SweptRows``.
struct SweepPlan {
    /// The most rows; they take 6 MiB.
    static let rowLimit = 1 << 18
    /// The most bytes of the keys of deletes.
    static let tombstoneByteLimit = 4 << 20

    struct Row {
        var number: Int64
        var place: HistoryPlace
        /// The bytes of the value in 28 bits, and four flags.
        private var sizeAndFlags: UInt32

        private static let sizeMask: UInt32 = 1 << 28 - 1

        init(number: Int64, place: HistoryPlace, byteCount: Int64, isTombstone: Bool) {
            self.number = number
            self.place = place
            sizeAndFlags = UInt32(clamping: min(byteCount, Int64(Row.sizeMask)))
            if isTombstone { sizeAndFlags |= 1 << 29 }
        }

        var byteCount: Int { Int(sizeAndFlags & Row.sizeMask) }
        var isTombstone: Bool { sizeAndFlags & 1 << 29 != 0 }

        /// Whether it is deleted with the range.
        fileprivate(set) var isDead: Bool {
            get { sizeAndFlags & 1 << 31 != 0 }
            set { set(1 << 31, newValue) }
        }

        /// Whether a later row of the range supersedes it, or a rule does not keep it.
        var isSuperseded: Bool {
            get { sizeAndFlags & 1 << 28 != 0 }
            set { set(1 << 28, newValue) }
        }

        /// Whether its key may have rows before the range.
        fileprivate var hasOlder: Bool {
            get { sizeAndFlags & 1 << 30 != 0 }
            set { set(1 << 30, newValue) }
        }

        private mutating func set(_ flag: UInt32, _ isSet: Bool) {
            if isSet { sizeAndFlags |= flag } else { sizeAndFlags &= ~flag }
        }
    }

    /// A delete in the range that is removed.
    struct Tombstone {
        var row: Int
        var key: [UInt8]
    }

    /// Where the range ends.
    struct End {
        /// The last place, which is counted once the range is deleted.
        var counted: HistoryPlace
        /// The history is complete from here on.
        var compacted: Int64
    }

    /// How much of the plan is done.
    struct Cursor {
        var row = 0
        var tombstone = 0
        var isDeleted = false
        /// Rows and places that were handed to the stretches.
        var countedRow = 0
        var outside = 0
    }

    /// Rows of a stretch: see ``SweptRows``.
    private let stretchRowCount: Int
    private(set) var rows: [Row] = []
    /// Deletes without older rows before the range; once ``settle(while:)`` has ended, those that go.
    private(set) var tombstones: [Tombstone] = []
    /// Rows before the range that rows of the range supersede.
    private(set) var outside: [Outside] = []

    struct Outside {
        var place: HistoryPlace
        /// That of the row that supersedes it, which is likely to be as long.
        var byteCount: Int32
    }
    private var tombstoneByteCount = 0
    private var settled = Settled()
    private var isSettled = false

    /// How much of the range is decided.
    private struct Settled {
        var rowCount = 0
        var tombstoneCount = 0
        /// Whether a superseded row stays.
        var waits = false
        /// For each stretch, whether any of it goes.
        var isSwept: [Bool] = []
    }

    init(stretchRowCount: Int) { self.stretchRowCount = stretchRowCount }

    /// Whether the range is as long as it may be.
    var isFull: Bool {
        rows.count >= SweepPlan.rowLimit || tombstoneByteCount >= SweepPlan.tombstoneByteLimit
    }

    /// Adds the next row.
    ///
    /// - Parameters:
    ///   - row: Its number and place, above all before.
    ///   - previous: The row that it supersedes; revision 0 for none.
    ///   - isDecided: Whether a rule has found that row superseded before.
    ///   - deletedKey: The key, if the row is a delete.
    mutating func append(
        _ row: Row,
        previous: HistoryPlace,
        isDecided: Bool,
        deletedKey: Bytes?
    ) {
        var row = row
        if previous.revision > 0 {
            if let index = index(of: previous, before: row.place) {
                rows[index].isSuperseded = true
                row.hasOlder = rows[index].hasOlder
            } else {
                if !isDecided, previous < rows.first?.place ?? row.place {
                    outside.append(Outside(place: previous, byteCount: Int32(row.byteCount)))
                }
                row.hasOlder = true
            }
        }
        // If the key has rows before the range, its tombstone stays until these are gone.
        if let deletedKey, !row.hasOlder {
            tombstones.append(Tombstone(row: rows.count, key: Array(deletedKey)))
            tombstoneByteCount += deletedKey.count + MemoryLayout<Tombstone>.stride
        }
        rows.append(row)
    }

    /// Decides which rows go with the range, once all of it was read; one stretch after the other.
    ///
    /// A stretch is rewritten only if that takes most of it. If a superseded row waits, so do the
    /// later tombstones, for it may be of their keys.
    ///
    /// - Parameter goesOn: Asked for each stretch.
    /// - Returns: Whether all of it is decided.
    mutating func settle(while goesOn: () -> Bool) -> Bool {
        while !isSettled {
            settleStretch()
            guard goesOn() else { break }
        }
        return isSettled
    }

    private mutating func settleStretch() {
        let start = settled.rowCount
        guard start < rows.count else {
            tombstones.removeAll { !rows[$0.row].isDead }
            isSettled = true
            return
        }
        let stretch = start..<min(start + stretchRowCount, rows.count)
        let ended = settled.tombstoneCount
        var next = ended
        while next < tombstones.count, tombstones[next].row < stretch.upperBound { next += 1 }
        let isSwept = isMostlySuperseded(stretch, tombstones[ended..<next])
        if isSwept {
            for index in stretch { rows[index].isDead = rows[index].isSuperseded }
            if !settled.waits {
                for tombstone in tombstones[ended..<next] { rows[tombstone.row].isDead = true }
            }
        } else {
            settled.waits = settled.waits || rows[stretch].contains(where: \.isSuperseded)
        }
        settled.isSwept.append(isSwept)
        (settled.rowCount, settled.tombstoneCount) = (stretch.upperBound, next)
    }

    /// The first row from `index` on that goes; `rows.count` if none does.
    func firstDead(from index: Int) -> Int {
        var index = index
        while index < rows.count, !rows[index].isDead {
            let stretch = index / stretchRowCount
            index = settled.isSwept[stretch] ? index + 1 : (stretch + 1) * stretchRowCount
        }
        return min(index, rows.count)
    }

    private func isMostlySuperseded(
        _ stretch: Range<Int>,
        _ tombstones: ArraySlice<Tombstone>
    ) -> Bool {
        var share = SweptRows.Share()
        for row in rows[stretch] {
            share.count(row.byteCount, isSuperseded: row.isSuperseded)
        }
        for tombstone in tombstones where !rows[tombstone.row].isSuperseded {
            share.supersededCount += 1
        }
        return share.isMost
    }

    private func index(of place: HistoryPlace, before newest: HistoryPlace) -> Int? {
        guard let first = rows.first, place >= first.place else { return nil }
        // The place, if each commit has one change and no row is missing.
        let guess = rows.count - Int(clamping: newest.revision - place.revision)
        if guess >= 0, guess < rows.count, rows[guess].place == place { return guess }
        let index = rows.partitioningIndex { $0.place >= place }
        return index < rows.count && rows[index].place == place ? index : nil
    }
}
