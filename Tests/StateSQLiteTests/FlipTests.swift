import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Single bits that a disk turned over in a database that was closed; `STATED_FLIPS` says how many, 200 without it.
struct FlipTests {
    static let flipCount = Extent.rounds(Extent.named("STATED_FLIPS", short: 200))
    static let parts: UInt64 = 4

    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test(arguments: Seed.each(Int(parts)))
    func
        `never silent about storage: a store with a flipped bit is refused and can be salvaged, or serves what it had`(
            seed: UInt64
        ) throws
    {
        try store.fillWithHistory(commitCount: 600, seed: seed)
        try flip(seed, rowCount: 2_000)
    }

    /// What compaction took away still lies behind the rows of pages, and on free ones.
    @Test(arguments: Seed.each(3))
    func `the same of a compacted store: what is gone does not come back, what is left stays`(
        seed: UInt64
    ) throws {
        try store.fillWithHistory(commitCount: 400, seed: seed)
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision * 9 / 10)
        keyspace.close()
        try flip(seed, rowCount: 300)
    }

    /// The root was a leaf once, whose rows still lie on it.
    @Test func `the same of each bit in the headers of the roots of a compacted store`() throws {
        try store.fillWithHistory(commitCount: 400, seed: Seed.base)
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision * 9 / 10)
        keyspace.close()
        try flip(rowCount: 300, name: "a root") { pages, _ in
            let root = try #require(pages.interiors.min())
            // The first table that is made is the history, the second `meta`.
            let bits = stride(from: 0, to: 96, by: 96 / Extent.rounds(96))
            return [root, 3].flatMap { page in
                bits.map { ((page - 1) * pageByteCount + $0 / 8, UInt8(1) << ($0 % 8)) }
            }
        }
    }

    /// Read as pointers of a leaf, the number of the last page below the root may lead to an old row.
    @Test func `the same where the number of a page is the place of a row that is gone`() throws {
        // The row that goes is small enough for the place, whatever the seed.
        let beginning = try LocalKeyspace(backing: store.backing())
        for _ in 0..<2 { try beginning.apply([.set("first", [UInt8](repeating: 1, count: 150))]) }
        beginning.close()
        try store.fillWithHistory(commitCount: 400, seed: Seed.base)
        let removed = try #require(FlipTests.firstRow(try readFile(store.database)))
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision * 9 / 10)
        keyspace.close()
        var bytes = try readFile(store.database)
        let pages = try PageTable(store.database, pageCount: bytes.count / pageByteCount)
        let root = try #require(pages.interiors.min())
        let start = (root - 1) * pageByteCount
        let place = FlipTests.number(bytes, start + 10)
        let (count, top) = (FlipTests.number(bytes, start + 3), FlipTests.number(bytes, start + 5))
        try #require(place >= 12 + 2 * count && place + removed.count <= top)
        bytes.replaceSubrange(start + place..<start + place + removed.count, with: removed)
        try write(bytes, to: store.database)
        try flip(rowCount: 300, name: "a root") { _, _ in (0..<8).map { (start, UInt8(1) << $0) } }
    }

    /// The cell of the first row of the history, where it is on one page with all of it.
    private static func firstRow(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
        for start in stride(from: pageByteCount, to: bytes.count, by: pageByteCount)
        where bytes[start] == 0x0D {
            let place = start + number(bytes, start + 8)
            // The size of the record, of two bytes at most, and the number of the row, 1.
            let isLong = bytes[place] > 0x7F
            let head = isLong ? 3 : 2
            guard bytes[place + head - 1] == 1 else { continue }
            let size =
                isLong ? (number(bytes, place) & 0x7F00) >> 1 | number(bytes, place) & 0x7F : 0
            return bytes[place..<place + head + (isLong ? size : Int(bytes[place]))]
        }
        return nil
    }

    private static func number(_ bytes: [UInt8], _ place: Int) -> Int {
        Int(bytes[place]) << 8 | Int(bytes[place + 1])
    }

    /// Remains before the cells, read as a free block, may be as long as the last row.
    @Test func `the same where a bit makes remains on a leaf the first free block`() throws {
        try store.fillWithHistory(commitCount: 400, seed: Seed.base)
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision * 9 / 10)
        keyspace.close()
        var bytes = try readFile(store.database)
        let pages = try PageTable(store.database, pageCount: bytes.count / pageByteCount)
        let bits = pages.leaves.flatMap { FlipTests.leaveFreeBlock(&bytes, page: $0) }
        try #require(!bits.isEmpty)
        try write(bytes, to: store.database)
        try flip(rowCount: 300, name: "a free block") { _, _ in Array(bits.prefix(20)) }
    }

    /// Writes a free block as long as the last row where a leaf has neither pointers nor cells.
    ///
    /// - Returns: The bits that make it the first of the page; none of a page that has free blocks, or
    ///   from whose number of cells one bit cannot take one.
    private static func leaveFreeBlock(
        _ bytes: inout [UInt8],
        page: Int
    ) -> [(place: Int, bit: UInt8)] {
        let start = (page - 1) * pageByteCount
        let (count, top) = (number(bytes, start + 3), number(bytes, start + 5))
        guard number(bytes, start + 1) == 0, bytes[start + 7] == 0, count % 2 == 1 else {
            return []
        }
        let pointers = (0..<count).map { number(bytes, start + 8 + 2 * $0) }
        let last = pointers[count - 1]
        let size = (pointers.filter { $0 > last }.min() ?? pageByteCount) - last
        // Places that are one bit.
        let places = (6..<12).map { 1 << $0 }.filter { 8 + 2 * count <= $0 && $0 + 4 <= top }
        return places.map { place in
            let block = [0, 0, UInt8(size >> 8), UInt8(size & 0xFF)]
            bytes.replaceSubrange(start + place..<start + place + 4, with: block)
            return (start + (place > 0xFF ? 1 : 2), UInt8(place > 0xFF ? place >> 8 : place))
        }
    }

    /// The row that such a pointer led to has no other.
    @Test func `the same of bits that make a pointer on a leaf equal to another`() throws {
        try store.fillWithHistory(commitCount: 600, seed: Seed.base)
        // Where compaction was, the numbers of rows have gaps that are no losses.
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision * 9 / 10)
        keyspace.close()
        let bytes = try readFile(store.database)
        try flip(rowCount: 300, name: "a pointer") { pages, _ in
            let places = pages.leaves.flatMap { FlipTests.repeatablePointers(bytes, page: $0) }
            try #require(!places.isEmpty)
            return Array(places.prefix(40))
        }
    }

    /// The bits of a leaf that make one of its pointers equal to another.
    private static func repeatablePointers(
        _ bytes: [UInt8],
        page: Int
    ) -> [(place: Int, bit: UInt8)] {
        let start = (page - 1) * pageByteCount
        let places = (0..<number(bytes, start + 3)).map { start + 8 + 2 * $0 }
        let pointers = Set(places.map { number(bytes, $0) })
        return places.flatMap { place in
            (0..<16).filter { pointers.contains(number(bytes, place) ^ 1 << $0) }.map {
                (place + ($0 < 8 ? 1 : 0), UInt8(1) << ($0 % 8))
            }
        }
    }

    private func flip(_ seed: UInt64, rowCount: Int) throws {
        try flip(rowCount: rowCount, name: "seed \(seed)") { pages, byteCount in
            var numbers = SplitMix(seed: seed)
            return (0..<(FlipTests.flipCount + 3) / Int(FlipTests.parts)).map { _ in
                let place = FlipTests.place(in: byteCount, pages, &numbers)
                return (place, UInt8(1) << UInt8.random(in: 0..<8, using: &numbers))
            }
        }
    }

    private func flip(
        rowCount: Int,
        name: String,
        _ places: (PageTable, Int) throws -> [(place: Int, bit: UInt8)]
    ) throws {
        try store.addFreePages()
        let expected = try store.contents()
        let whole = try readFile(store.database)
        let mark = try readFile(store.mark)
        let pages = try PageTable(store.database, pageCount: whole.count / pageByteCount)
        try #require(expected.changes.count > rowCount && !pages.interiors.isEmpty)
        for (place, bit) in try places(pages, whole.count) {
            var bytes = whole
            bytes[place] ^= bit
            let flip = Flip(
                name: "\(name): byte \(place % pageByteCount) of page "
                    + "\(place / pageByteCount + 1), mask \(bit)",
                mayLoseRow: !pages.others.contains(place / pageByteCount + 1)
            )
            try store.put(bytes, markedBy: mark)
            try check(bytes, flip, expected)
        }
    }

    private struct Flip {
        let name: String
        /// Whether the byte may be part of a row.
        let mayLoseRow: Bool
    }

    /// Anywhere; and as often in the header, at the beginning of pages, and on pages that lead to others.
    private static func place(
        in byteCount: Int,
        _ pages: PageTable,
        _ numbers: inout SplitMix
    ) -> Int {
        let page: Int
        switch Int.random(in: 0..<5, using: &numbers) {
        case 0: return Int.random(in: 0..<108, using: &numbers)
        case 1:
            page = Int.random(in: 0..<byteCount / pageByteCount, using: &numbers)
            return page * pageByteCount + Int.random(in: 0..<40, using: &numbers)
        case 2: page = (pages.others.randomElement(using: &numbers) ?? 1) - 1
        case 3: page = (pages.leaves.randomElement(using: &numbers) ?? 1) - 1
        default: return Int.random(in: 0..<byteCount, using: &numbers)
        }
        let isUnused = Bool.random(using: &numbers)
        return page * pageByteCount
            + Int.random(in: 0..<(isUnused ? 400 : pageByteCount), using: &numbers)
    }

    private let files = ["lock", "stated.db", "stated.db-mark"]

    private func check(_ bytes: [UInt8], _ flip: Flip, _ expected: Contents) throws {
        unlink(store.log)
        unlink(store.database + "-shm")
        let finding = try? store.check().findings.first ?? ""
        #expect(try readFile(store.database) == bytes, "the check wrote: \(flip.name)")
        #expect(names(in: store.directory).sorted() == files, "\(flip.name)")
        do {
            // Not in the expectation, which would print all of both.
            let isSame = try store.contents() == expected
            #expect(isSame, "\(flip.name)")
            try checkWrites(flip, expected)
        } catch let error as StateError {
            #expect(error.message.contains(store.database), "\(flip.name)")
            #expect(
                [.corrupt, .newerFormat, .storage].contains(error.code),
                "\(flip.name): \(error)"
            )
            if error.code == .corrupt {
                let command = "`stated --salvage --data \(store.directory) --to "
                #expect(error.message.contains(command), "\(flip.name): \(error)")
            }
            #expect(finding != "", "\(flip.name): the check found nothing, the start \(error)")
            try checkSalvage(flip, expected)
            #expect(try readFile(store.database) == bytes, "\(flip.name)")
        }
    }

    /// A store that serves takes writes too, and they damage nothing.
    private func checkWrites(_ flip: Flip, _ expected: Contents) throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        for number in 0..<3 {
            let value = [UInt8](repeating: UInt8(number), count: 30_000)
            #expect(throws: Never.self, "\(flip.name)") {
                try keyspace.apply([.set("flip/large", value), .set("flip/small", [1])])
            }
        }
        keyspace.close()
        let found = try store.contents()
        let isKept = found.changes.starts(with: expected.changes)
        #expect(isKept, "\(flip.name)")
        #expect(found.changes.count == expected.changes.count + 6, "\(flip.name)")
        #expect(try store.check().findings == [], "\(flip.name)")
    }

    private func checkSalvage(_ flip: Flip, _ expected: Contents) throws {
        let target = try TemporaryStore()
        let (lines, summary) = try store.salvage(to: target)
        let check = try target.check()
        #expect(check.findings.isEmpty, "\(flip.name)")
        let found = try target.contents()
        let lost = Set(expected.changes).subtracting(found.changes)
        // One bit is in one row at most.
        #expect(lost.count <= (flip.mayLoseRow ? 1 : 0), "\(flip.name): \(lost.count) rows")
        let hasRest = found.changes == expected.changes.filter { !lost.contains($0) }
        #expect(hasRest, "\(flip.name)")
        #expect(found.loaded.epoch != expected.loaded.epoch)
        #expect(found.loaded.revision >= expected.loaded.revision + 1 << 32 - 1, "\(flip.name)")
        #expect(summary.isWhole == lost.isEmpty, "\(flip.name): \(lines)")
        #expect(summary.lostRowCount == Int64(lost.count), "\(flip.name): \(lines)")
        #expect(lines.isEmpty == lost.isEmpty, "\(flip.name): \(lines)")
        #expect(summary.entryCount == check.summary.entryCount)
        for change in lost {
            let revision = "revision \(change.plain.revision)"
            let isNamed =
                lines.contains { $0.contains(revision) }
                || lines.contains { $0.hasPrefix("lost: ") || $0.hasPrefix("damaged: ") }
            #expect(isNamed, "\(flip.name): \(lines)")
        }
    }
}
