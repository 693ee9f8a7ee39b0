import StateEngine

/// What is superseded among the rows of one range of the history.
///
/// Most of what goes lies side by side: of a thousand keys that are overwritten all the time, all rows of a range but the
/// last thousand. So a range is read first, and what is superseded in it is deleted in runs: 0.3 µs a row, where a search
/// for the row that each one supersedes took 10. Rows before the range are left to ``SweptRows``.
struct SweepPlan {
    /// At most so many rows, 6 MiB.
    static let rowLimit = 1 << 18
    /// At most so many bytes of the keys of deletes.
    static let tombstoneByteLimit = 4 << 20

    struct Row {
        var number: Int64
        var place: HistoryPlace
        /// Bytes of the value, at most what 29 bits hold, and three flags.
        private var sizeAndFlags: UInt32

        private static let sizeMask: UInt32 = 1 << 29 - 1

        init(number: Int64, place: HistoryPlace, byteCount: Int64, isTombstone: Bool) {
            self.number = number
            self.place = place
            sizeAndFlags = UInt32(clamping: min(byteCount, Int64(Row.sizeMask)))
            if isTombstone { sizeAndFlags |= 1 << 29 }
        }

        var byteCount: Int { Int(sizeAndFlags & Row.sizeMask) }
        var isTombstone: Bool { sizeAndFlags & 1 << 29 != 0 }

        /// It goes.
        var isDead: Bool {
            get { sizeAndFlags & 1 << 31 != 0 }
            set { set(1 << 31, newValue) }
        }

        /// Its key may have rows before the range.
        fileprivate var hasOlder: Bool {
            get { sizeAndFlags & 1 << 30 != 0 }
            set { set(1 << 30, newValue) }
        }

        private mutating func set(_ flag: UInt32, _ isSet: Bool) {
            if isSet { sizeAndFlags |= flag } else { sizeAndFlags &= ~flag }
        }
    }

    /// A delete in the range that goes.
    struct Tombstone {
        var row: Int
        var key: [UInt8]
    }

    private(set) var rows: [Row] = []
    private(set) var tombstones: [Tombstone] = []
    /// What lies before the range and is superseded in it.
    private(set) var outside: [HistoryPlace] = []
    private var tombstoneByteCount = 0

    /// Whether the range is as long as it may be.
    var isFull: Bool {
        rows.count >= SweepPlan.rowLimit || tombstoneByteCount >= SweepPlan.tombstoneByteLimit
    }

    /// Adds the next row.
    ///
    /// - Parameters:
    ///   - row: Number and place, above all before.
    ///   - previous: What it supersedes; revision 0 for nothing.
    ///   - deletedKey: The key, where the row is a delete.
    mutating func append(_ row: Row, previous: HistoryPlace, deletedKey: Bytes?) {
        var row = row
        if previous.revision > 0 {
            if let index = index(of: previous, before: row.place) {
                rows[index].isDead = true
                row.hasOlder = rows[index].hasOlder
            } else {
                if previous < rows.first?.place ?? row.place { outside.append(previous) }
                row.hasOlder = true
            }
        }
        // A tombstone of a key that has rows before the range stays until these are gone.
        if let deletedKey, !row.hasOlder {
            row.isDead = true
            tombstones.append(Tombstone(row: rows.count, key: Array(deletedKey)))
            tombstoneByteCount += deletedKey.count + MemoryLayout<Tombstone>.stride
        }
        rows.append(row)
    }

    private func index(of place: HistoryPlace, before newest: HistoryPlace) -> Int? {
        guard let first = rows.first, place >= first.place else { return nil }
        // Where each commit has one change and none is missing, this is it.
        let guess = rows.count - Int(clamping: newest.revision - place.revision)
        if guess >= 0, guess < rows.count, rows[guess].place == place { return guess }
        let index = rows.partitioningIndex { $0.place >= place }
        return index < rows.count && rows[index].place == place ? index : nil
    }
}
