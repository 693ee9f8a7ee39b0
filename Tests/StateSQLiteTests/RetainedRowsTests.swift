import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What compaction has in memory of rows, beside a list of all of them.
struct RetainedRowsTests {
    private struct Listed: Hashable {
        var row: RetainedRows.Row
        var deletedKey: [UInt8]?
    }

    private var rows = RetainedRows()
    private var listed: [Listed] = []
    private var numbers: SplitMix

    init() { numbers = SplitMix(seed: Seed.base) }

    /// Adds a row, whose number is the next one, or behind a gap.
    private mutating func append(keyByteCount: Int = 30, hasGap: Bool = false) {
        let last = listed.last?.row
        var row = RetainedRows.Row()
        row.number = (last?.number ?? 0) + 1
        if hasGap { row.number += Int64.random(in: 1...1_000_000, using: &numbers) }
        (row.revision, row.ordinal) = (last?.revision ?? 0, last?.ordinal ?? 0)
        if numbers.chance(80) || row.revision == 0 {
            row.revision += numbers.chance(90) ? 1 : 1 << 40
            row.ordinal = numbers.chance(90) ? 0 : 7
        } else {
            row.ordinal += 1
        }
        if numbers.chance(70), let previous = listed.randomElement(using: &numbers)?.row.place {
            (row.previousRevision, row.previousOrdinal) = (previous.revision, previous.ordinal)
        }
        let isDelete = numbers.chance(20)
        let key = isDelete ? numbers.bytes(keyByteCount) : nil
        row.byteCount = isDelete ? 0 : [64, 64, 64, 0, 8 << 20].randomElement(using: &numbers) ?? 0
        append(row, key, hasGap: hasGap)
        listed.append(Listed(row: row, deletedKey: key))
    }

    private mutating func append(_ row: RetainedRows.Row, _ deletedKey: [UInt8]?, hasGap: Bool) {
        let value = [UInt8](repeating: 1, count: Int(row.byteCount))
        value.withUnsafeBytes { value in
            (deletedKey ?? [1]).withUnsafeBytes { key in
                let change = StoredChange(
                    revision: row.place.revision,
                    ordinal: row.place.ordinal,
                    key: key,
                    value: deletedKey == nil ? value : nil,
                    created: 1,
                    owner: 0,
                    version: 1,
                    time: 0,
                    cause: Bytes(start: nil, count: 0),
                    previousRevision: row.previous.revision,
                    previousOrdinal: row.previous.ordinal
                )
                rows.append(change, number: hasGap ? row.number : nil)
            }
        }
    }

    /// What it passes on from a number up to another, in pieces.
    private func read(from first: Int64, before end: Int64) -> (rows: [Listed], next: Int64)? {
        var (found, next): ([Listed], Int64) = ([], first)
        var cursor = RetainedRows.Cursor()
        while next < end {
            let piece = rows.read(from: next, before: min(end, next + 256), &cursor) {
                found.append(Listed(row: $0, deletedKey: $1.map { Array($0) }))
                return found.count % 100 != 0
            }
            guard let piece else { return found.isEmpty ? nil : (found, next) }
            next = piece
        }
        return (found, next)
    }

    @Test mutating func `each row is passed on as it was, from any number on`() throws {
        for _ in 0..<3_000 { append(hasGap: numbers.chance(1)) }
        for _ in 0..<50 {
            let first = try #require(listed.randomElement(using: &numbers)).row.number
            let end = try #require(listed.randomElement(using: &numbers)).row.number
            guard first < end else { continue }
            let expected = listed.filter { first..<end ~= $0.row.number }
            // A gap is as well known as a row.
            let found = try #require(read(from: first, before: end))
            let isSame = found.rows == expected
            #expect(isSame, "from \(first) up to \(end)")
            #expect(found.next == end)
        }
        #expect(rows.newest.number == listed.last?.row.number)
        #expect(rows.newest.place == listed.last?.row.place)
    }

    @Test mutating func `bounded: a delete of a key that is longer than any may be is not taken`()
        throws
    {
        for _ in 0..<10 { append() }
        let first = try #require(listed.last).row.number + 1
        for _ in 0..<20 { append(keyByteCount: 17 << 10) }
        for _ in 0..<10 { append() }
        let end = try #require(listed.last).row.number + 1
        var next = first
        while next < end {
            let found = read(from: next, before: next + 1)
            let index = Int(next) - 1
            let isLong = (listed[index].deletedKey?.count ?? 0) > 1_024
            #expect(found?.rows == (isLong ? nil : [listed[index]]), "\(next)")
            next += 1
        }
        let longCount = listed.count { ($0.deletedKey?.count ?? 0) > 1_024 }
        #expect(longCount > 0)
    }

    @Test mutating func `the rows of a transaction that fails are gone`() throws {
        for count in [1, 10, 2_000, 20_000] {
            for _ in 0..<count { append() }
            let (end, before) = (rows.end, listed)
            for _ in 0..<count { append() }
            rows.cutBack(to: end)
            listed = before
        }
        let end = try #require(listed.last).row.number + 1
        let isSame = try #require(read(from: 1, before: end)).rows == listed
        #expect(isSame)
    }

    @Test
    mutating func
        `bounded: beyond its limit it takes no rows, and goes on once others are dropped`() throws
    {
        // Deletes of long keys fill it soon.
        while listed.count < 80_000 { append(keyByteCount: 1_024) }
        let end = try #require(listed.last).row.number + 1
        let early = try #require(read(from: 1, before: end))
        #expect(early.next < end, "all was taken")
        let isStart = listed.starts(with: early.rows)
        #expect(isStart)
        let byteCount = early.rows.reduce(0) { $0 + ($1.deletedKey?.count ?? 0) }
        #expect(byteCount <= RetainedRows.byteLimit)
        #expect(read(from: early.next, before: end) == nil)
        #expect(rows.newest.number == end - 1)

        rows.drop(before: early.next)
        #expect(read(from: 1, before: end) == nil)
        for _ in 0..<100 { append() }
        let isEnd = try #require(read(from: end, before: end + 100)).rows == listed.suffix(100)
        #expect(isEnd)
        // What was not taken is not known to be missing.
        #expect(read(from: end - 1, before: end + 100) == nil)
    }

    @Test mutating func `rows that others added are not known to be missing`() throws {
        for _ in 0..<10 { append() }
        let newest = try #require(listed.last).row
        let other = HistoryPlace(revision: newest.place.revision + 1, ordinal: 0)
        rows.begin(behind: FoundRow(number: newest.number + 1, place: other))
        var cursor = RetainedRows.Cursor()
        #expect(rows.read(from: newest.number + 1, before: .max, &cursor) { _, _ in true } == nil)
        rows.stop()
        append()
        #expect(read(from: 1, before: 2) == nil)
    }
}
