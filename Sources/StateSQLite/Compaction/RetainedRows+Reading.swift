package import StateEngine

/// Reading what is in memory of the rows, and forgetting it; ``RetainedRows`` says what it is for.
extension RetainedRows {
    /// The number and place of the newest row of all, whether it is here or not.
    package var newest: FoundRow { FoundRow(number: newestRow.number, place: newestRow.place) }

    /// There are rows up to `newest` that may not be here.
    package mutating func begin(behind newest: FoundRow?) {
        guard let newest, newest != self.newest else { return }
        newestRow = Row()
        newestRow.number = newest.number
        (newestRow.revision, newestRow.ordinal) = (newest.place.revision, newest.place.ordinal)
        hasNewest = false
    }

    /// Forgets all rows, and takes no more: others than this process, or rules, have changed them.
    package mutating func stop() {
        hasStopped = true
        parts = []
    }

    /// Forgets the rows before a number.
    package mutating func drop(before number: Int64) {
        parts.removeFirst(parts.partitioningIndex { $0.tail.row.number >= number })
        if parts.isEmpty { hasNewest = false }
    }

    // MARK: A transaction that fails

    /// Removes the rows that were added since; none was dropped meanwhile.
    package mutating func cutBack(to end: End) {
        guard !hasStopped else { return }
        parts.removeLast(parts.count - end.partCount)
        if let tail = end.tail { parts[end.partCount - 1].tail = tail }
        (newestRow, hasNewest) = (end.newestRow, end.hasNewest)
    }

    // MARK: Reading them

    /// Where a reader is; it is used until rows are dropped.
    package struct Cursor {
        fileprivate var part: Int?
        fileprivate var tail = Tail()

        package init() {}
    }

    /// Calls `body` for the rows from one number up to another, until it returns false.
    ///
    /// - Parameters:
    ///   - first: The number of the first row.
    ///   - end: Rows with this number, or a later one, are not passed on.
    ///   - cursor: Where the last call has ended.
    ///   - body: Gets the key of a deleted value, whose bytes are valid during the call.
    /// - Returns: Up to which number rows were passed on; nil if the first is not here.
    package func read(
        from first: Int64,
        before end: Int64,
        _ cursor: inout Cursor,
        _ body: (_ row: Row, _ deletedKey: Bytes?) -> Bool
    ) -> Int64? {
        guard let index = find(first, &cursor) else { return nil }
        let part = parts[index]
        while cursor.tail.byteCount < part.tail.byteCount {
            var next = cursor.tail
            let deletedKey = next.row.read(part.block.bytes, &next.byteCount)
            guard next.row.number < end else { return end }
            cursor.tail = next
            if next.row.number >= first, !body(next.row, deletedKey) { return next.row.number + 1 }
        }
        return min(part.tail.row.number + 1, end)
    }

    /// The part with the rows from a number on, and the cursor before these; nil if it is not here.
    private func find(_ number: Int64, _ cursor: inout Cursor) -> Int? {
        if let index = cursor.part, parts.indices.contains(index),
            cursor.tail.row.number < number, number <= parts[index].tail.row.number
        {
            return index
        }
        let index = parts.partitioningIndex { $0.tail.row.number >= number }
        guard index < parts.count, parts[index].start <= number else { return nil }
        (cursor.part, cursor.tail) = (index, parts[index].base)
        return index
    }
}

extension RetainedRows.Row {
    package var place: HistoryPlace { HistoryPlace(revision: revision, ordinal: ordinal) }

    /// The place of the row that it supersedes; revision 0 for none.
    package var previous: HistoryPlace {
        HistoryPlace(revision: previousRevision, ordinal: previousOrdinal)
    }

    /// Becomes the row that is written at an offset, which then is behind it.
    ///
    /// - Returns: The key of a deleted value.
    mutating func read(
        _ bytes: UnsafeMutablePointer<UInt8>,
        _ offset: inout Int
    ) -> Bytes? {
        var next = bytes + offset
        let flags = Flags(rawValue: next.pointee)
        next += 1
        number &+= flags.contains(.nextNumber) ? 1 : Self.take(&next)
        if flags.contains(.nextRevision) {
            (revision, ordinal) = (revision &+ 1, 0)
        } else {
            revision &+= Self.take(&next)
            ordinal = Int32(truncatingIfNeeded: Self.take(&next))
        }
        (previousRevision, previousOrdinal) = (0, 0)
        if flags.contains(.hasPrevious) {
            previousRevision = revision &- Self.take(&next)
            let isFirst = flags.contains(.previousIsFirst)
            previousOrdinal = isFirst ? 0 : Int32(truncatingIfNeeded: Self.take(&next))
        }
        if !flags.contains(.sameSize) { byteCount = Self.take(&next) }
        var deletedKey: Bytes?
        if flags.contains(.isTombstone) {
            let count = Int(Self.take(&next))
            deletedKey = Bytes(start: next, count: count)
            next += count
        }
        offset = next - bytes
        return deletedKey
    }

    private static func take(_ next: inout UnsafeMutablePointer<UInt8>) -> Int64 {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while true {
            let byte = next.pointee
            next += 1
            number |= UInt64(byte & 0x7F) << shift
            guard byte > 0x7F else { return Int64(bitPattern: number) }
            shift += 7
        }
    }
}
