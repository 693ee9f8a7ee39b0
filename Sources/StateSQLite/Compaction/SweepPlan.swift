import StateEngine

/// What is superseded among the rows of one range of the history.
///
/// Most of what goes lies side by side: of a thousand keys that are overwritten all the time, all rows of a range but the last
/// thousand. So a range is read first, and what is dead in it is deleted in runs: 0.3 µs a row, where a search for the row that
/// each one supersedes took 10. Rows before the range that it supersedes are looked for in order of their places, so that the
/// pages where they lie are touched once; the longer the range, the more of them a page has.
struct SweepPlan {
    /// At most so many rows, 6 MiB.
    static let rowLimit = 1 << 18
    /// At most so many bytes of the keys of deletes.
    static let tombstoneByteLimit = 4 << 20

    struct Row {
        var number: Int64
        var place: HistoryPlace
        /// Bytes of the value, at most what 31 bits hold; the sign bit: it goes.
        private var sizeAndFlag: UInt32

        init(number: Int64, place: HistoryPlace, byteCount: Int64) {
            self.number = number
            self.place = place
            sizeAndFlag = UInt32(clamping: min(byteCount, Int64(Int32.max)))
        }

        var byteCount: Int { Int(sizeAndFlag & 0x7FFF_FFFF) }

        var isDead: Bool {
            get { sizeAndFlag >> 31 == 1 }
            set { sizeAndFlag = sizeAndFlag & 0x7FFF_FFFF | (newValue ? 1 << 31 : 0) }
        }
    }

    /// A delete in the range.
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
        if let deletedKey {
            row.isDead = true
            tombstones.append(Tombstone(row: rows.count, key: Array(deletedKey)))
            tombstoneByteCount += deletedKey.count + MemoryLayout<Tombstone>.stride
        }
        if previous.revision > 0 {
            if let index = index(of: previous, before: row.place) {
                rows[index].isDead = true
            } else if previous < rows.first?.place ?? row.place {
                outside.append(previous)
            }
        }
        rows.append(row)
    }

    /// Puts what lies before the range in order.
    mutating func finish() { outside.sort() }

    private func index(of place: HistoryPlace, before newest: HistoryPlace) -> Int? {
        guard let first = rows.first, place >= first.place else { return nil }
        // Where each commit has one change and none is missing, this is it.
        let guess = rows.count - Int(clamping: newest.revision - place.revision)
        if guess >= 0, guess < rows.count, rows[guess].place == place { return guess }
        let index = rows.partitioningIndex { $0.place >= place }
        return index < rows.count && rows[index].place == place ? index : nil
    }
}
