package import StateEngine

/// How much waits for compaction; asked after each commit.
extension SQLiteBacking {
    /// While idle, a transaction is worth it from so many rows on.
    static let worthwhileRowCount: Int64 = 4_096
    /// So many bytes may wait until the writers pause, whatever the retention.
    static let shortByteCount: Int64 = 8 << 20

    package var compactionNeed: CompactionNeed {
        var need = CompactionNeed()
        guard let open else { return need }
        let history = history
        open.cuts.limits = history
        lookForRules(open, &need)
        let backlog = backlog(of: open)
        gauges.note(backlogRowCount: backlog.rowCount)
        if backlog.isAny { add(backlog, open, history, &need) }
        // A backup is read in pieces.
        return need.isAny && pause.millisecondsLeft(clock) > 0 ? CompactionNeed() : need
    }

    /// How much waits for the rules: rows that they have not read, and what is due.
    private func lookForRules(_ open: OpenStore, _ need: inout CompactionNeed) {
        let rules = rules
        guard rules != nil || open.hasRules else { return }
        use(rules, in: open)
        let rowCount = open.cuts.end.rowCount
        let unread = open.sweep.ruled.unreadRowCount(of: rowCount)
        let isDue = open.sweep.ruled.isDue(rowCount: rowCount, time: open.age)
        need.isAny = unread > 0 || isDue
        need.isWorthwhile = isDue || unread >= SQLiteBacking.worthwhileRowCount
        need.isDue = isDue || unread >= 4 * SQLiteBacking.worthwhileRowCount
        need.isUrgent = unread >= 32 * SQLiteBacking.worthwhileRowCount
    }

    /// Before rows are looked at.
    func use(_ rules: HistoryRules?, in open: OpenStore) {
        open.hasRules = open.hasRules || rules != nil
        open.sweep.ruled.keep(by: rules, versions)
        open.cuts.shortestAge = rules?.shortestAge
    }

    package var shortage: StateError? { open?.room.shortage }

    func target(in open: OpenStore) -> Int64 {
        guard !compactionGoal.isAsked else { return compactionGoal.wantedRevision }
        return max(open.cuts.retained(at: clock()).revision, compactionGoal.wantedRevision)
    }

    /// How much waits for compaction.
    private func backlog(of open: OpenStore) -> Backlog {
        let target = target(in: open)
        let sweep = open.sweep
        guard target > sweep.sweptRevision || sweep.isSweeping,
            compactionGoal.finished
                != CompactionGoal.Finished(target: target, newest: open.cuts.end.revision)
        else { return Backlog() }
        let (from, to) = (
            open.cuts.cut(through: sweep.sweptRevision), open.cuts.cut(through: target)
        )
        return Backlog(
            isAny: true,
            rowCount: max(0, to.rowCount - from.rowCount),
            byteCount: max(0, to.byteCount - from.byteCount)
        )
    }

    struct Backlog {
        var isAny = false
        var rowCount: Int64 = 0
        var byteCount: Int64 = 0
    }
}

extension HistorySweep {
    /// Whether a range or a stretch is under way, or a stretch is due.
    var isSweeping: Bool {
        plan != nil || stretch != nil || sweepsAll || rows.isDue
    }

    /// All of it was looked at: of a transaction that a range ended in, the rest may not have been.
    var sweptRevision: Int64 { HistorySweep.revision(of: counted) }

    private static func revision(of place: HistoryPlace) -> Int64 {
        place.ordinal == .max ? place.revision : max(0, place.revision - 1)
    }
}

extension SweptRows {
    /// Whether there is a stretch to be swept.
    var isDue: Bool { dueCount > 0 || pass != nil || isHalfSuperseded || hasManyTombstones }

    /// Whether half of all rows are superseded, though perhaps not most of any stretch.
    var isHalfSuperseded: Bool {
        supersededCount >= rowLimit / 2 && supersededCount * 2 >= rowCount
    }

    /// Whether a quarter of all rows are tombstones that the last pass did not leave.
    ///
    /// Then all stretches are swept, in order.
    var hasManyTombstones: Bool {
        let count = tombstoneCount - heldCount
        return count >= rowLimit && count * 4 >= rowCount
    }
}

/// What compaction asks about the rows that the retention has not passed yet, in memory: about four
/// bytes a row.
///
/// Without it, each row is read from the disk once more when the retention passes it. With 50
/// clients and pipelines of 16, that took a fifth of the commit thread's time.
///
/// It need not have every row: the others are read from the disk. It takes no rows beyond 8 MiB, so
/// that it has those which the retention passes next.
package struct RetainedRows {
    /// One row, without its bytes.
    package struct Row: Hashable {
        package var number: Int64 = 0
        package var revision: Int64 = 0
        package var ordinal: Int32 = 0
        /// The place of the row that it supersedes; 0 for none.
        package var previousRevision: Int64 = 0
        package var previousOrdinal: Int32 = 0
        /// The bytes of its value.
        package var byteCount: Int64 = 0

        package init() {}
    }

    /// The most bytes, with those of keys that were deleted.
    package static let byteLimit = 8 << 20

    /// Rows of a range of numbers, each encoded relative to the one before it.
    struct Part {
        /// The first number of the range; the last is that of the last row.
        let start: Int64
        /// What the first row is relative to.
        let base: Tail
        var tail: Tail
        let block = Block()
    }

    /// The end of the rows of a block.
    struct Tail {
        var row = Row()
        /// How many bytes of the block are used.
        var byteCount = 0
    }

    final class Block {
        static let byteCount = 16 << 10
        let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: byteCount)
        deinit { bytes.deallocate() }
    }

    var parts: [Part] = []
    /// The newest row of all, whether it is here or not; of one that is not, only number and place.
    var newestRow = Row()
    /// Whether the newest row is here.
    var hasNewest = false
    /// Whether no more rows are taken.
    var hasStopped = false

    package init() {}

    /// Adds the row behind all others.
    ///
    /// - Parameters:
    ///   - change: The row.
    ///   - number: Its number; nil for one more than the last.
    package mutating func append(_ change: borrowing StoredChange, number: Int64? = nil) {
        guard !hasStopped else { return }
        var row = Row()
        row.number = number ?? newestRow.number &+ 1
        (row.revision, row.ordinal) = (change.revision, change.ordinal)
        if change.previousRevision > 0 {
            row.previousRevision = change.previousRevision
            row.previousOrdinal = change.previousOrdinal
        }
        row.byteCount = Int64(change.value?.count ?? 0)
        let deletedKey = change.value == nil ? change.key : nil
        let byteCount = Row.longestByteCount + (deletedKey?.count ?? 0)
        if !hasRoom(byteCount) { beginPart(row, byteCount) }
        newestRow = row
        guard hasNewest else { return }
        let last = parts.count - 1
        let start = parts[last].block.bytes + parts[last].tail.byteCount
        let end = row.write(deletedKey, after: parts[last].tail.row, to: start)
        parts[last].tail = Tail(row: row, byteCount: end - parts[last].block.bytes)
    }

    /// Where the rows end, to be cut back to it.
    package struct End {
        let partCount: Int
        let tail: Tail?
        let newestRow: Row
        let hasNewest: Bool
    }

    package var end: End {
        End(
            partCount: parts.count,
            tail: parts.last?.tail,
            newestRow: newestRow,
            hasNewest: hasNewest
        )
    }

    private func hasRoom(_ byteCount: Int) -> Bool {
        guard hasNewest, let part = parts.last else { return false }
        return part.tail.byteCount + byteCount <= Block.byteCount
    }

    /// Begins a part with a row, if there is room for it.
    private mutating func beginPart(_ row: Row, _ byteCount: Int) {
        let hasRoom =
            parts.count < RetainedRows.byteLimit / Block.byteCount && byteCount <= Block.byteCount
        defer { hasNewest = hasRoom }
        guard hasRoom else { return }
        var base = Tail(row: row)
        base.row.number &-= 1
        let start = hasNewest ? newestRow.number &+ 1 : row.number
        parts.append(Part(start: start, base: base, tail: base))
    }
}

/// A row as bytes, relative to the one before it: flags, then the numbers that they do not imply,
/// seven bits a byte, and the key of a deleted value.
extension RetainedRows.Row {
    struct Flags: OptionSet {
        let rawValue: UInt8
        /// The number is the next one.
        static let nextNumber = Flags(rawValue: 1)
        /// It is the first row of the next revision.
        static let nextRevision = Flags(rawValue: 2)
        static let hasPrevious = Flags(rawValue: 4)
        /// It supersedes the first row of a revision.
        static let previousIsFirst = Flags(rawValue: 8)
        /// The value is as long as that of the row before.
        static let sameSize = Flags(rawValue: 16)
        static let isTombstone = Flags(rawValue: 32)
    }

    /// The most bytes, without a key.
    fileprivate static let longestByteCount = 72

    /// Writes it.
    ///
    /// - Returns: Where its bytes end.
    fileprivate func write(
        _ deletedKey: Bytes?,
        after last: RetainedRows.Row,
        to start: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        var flags: Flags = []
        var end = start + 1
        func put(_ number: Int64, unless flag: Flags, _ isImplied: Bool) {
            if isImplied { flags.insert(flag) } else { Self.put(number, &end) }
        }
        put(number &- last.number, unless: .nextNumber, number == last.number &+ 1)
        if revision == last.revision &+ 1, ordinal == 0 {
            flags.insert(.nextRevision)
        } else {
            Self.put(revision &- last.revision, &end)
            Self.put(Int64(ordinal), &end)
        }
        if previousRevision != 0 {
            flags.insert(.hasPrevious)
            Self.put(revision &- previousRevision, &end)
            put(Int64(previousOrdinal), unless: .previousIsFirst, previousOrdinal == 0)
        }
        put(byteCount, unless: .sameSize, byteCount == last.byteCount)
        if let deletedKey {
            flags.insert(.isTombstone)
            Self.put(Int64(deletedKey.count), &end)
            if let bytes = deletedKey.baseAddress {
                UnsafeMutableRawPointer(end).copyMemory(from: bytes, byteCount: deletedKey.count)
            }
            end += deletedKey.count
        }
        start.pointee = flags.rawValue
        return end
    }

    private static func put(_ number: Int64, _ end: inout UnsafeMutablePointer<UInt8>) {
        var rest = UInt64(bitPattern: number)
        while rest > 0x7F {
            end.pointee = UInt8(truncatingIfNeeded: rest) | 0x80
            end += 1
            rest >>= 7
        }
        end.pointee = UInt8(truncatingIfNeeded: rest)
        end += 1
    }
}
