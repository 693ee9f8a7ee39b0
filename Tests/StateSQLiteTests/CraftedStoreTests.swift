import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import Testing

/// Stores whose pages were made to lead a reader astray: a salvage of each ends, in time and memory of the order of the file.
@Suite(.timeLimit(.minutes(1)))
struct CraftedStoreTests {
    private let store: TemporaryStore
    private let target: TemporaryStore
    private static let pageByteCount = HistorySchema.pageByteCount

    init() throws {
        store = try TemporaryStore()
        target = try TemporaryStore()
        try store.fill(sampleChanges(900))
    }

    private func change(_ body: (inout [UInt8]) throws -> Void) throws {
        var bytes = try readFile(store.database)
        try body(&bytes)
        try write(bytes, to: store.database)
    }

    private func start(of page: Int) -> Int { (page - 1) * Self.pageByteCount }

    private func leaf() throws -> Int {
        let leaves = try PageTable(store.database, pageCount: 1_000).leaves
        return leaves[leaves.count / 2]
    }

    /// The rows beside those of one page are there.
    private func expectTheRest() throws {
        let (lines, summary) = try store.salvage(to: target)
        #expect(!summary.isWhole && summary.rowCount > 600, "\(lines)")
        #expect(lines.count < 300)
    }

    @Test func `a record that goes on for ever on one page ends`() throws {
        let leaf = try leaf()
        try change { bytes in
            let page = start(of: leaf)
            // One cell, of 2^62 bytes, which continues on this very page.
            let place = Self.pageByteCount / 2
            bytes.put(1, at: page + 3, count: 2)
            bytes.put(place, at: page + 8, count: 2)
            let size: [UInt8] = [0xC0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]
            bytes.replaceSubrange(page + place..<page + place + 9, with: size)
            bytes[page + place + 9] = 1
            // Wherever the local part ends, there stands the number of the page.
            for offset in place + 10..<Self.pageByteCount - 4 where offset % 4 == 0 {
                bytes.put(leaf, at: page + offset, count: 4)
            }
            bytes.put(leaf, at: page, count: 4)
            bytes[page] = 0x0D
        }
        try expectTheRest()
    }

    @Test func `records by the thousand that share one chain cost no thousand chains`() throws {
        let long = try TemporaryStore()
        let keyspace = try LocalKeyspace(backing: long.backing())
        try keyspace.apply([.set("long", [UInt8](repeating: 7, count: 4 << 20))])
        keyspace.close()
        let expected = try long.contents().changes
        var bytes = try readFile(long.database)
        // The page on which the value goes on: each page of it begins with the number of the next.
        let pageCount = bytes.count / Self.pageByteCount
        var found: Int?
        for number in 3..<pageCount where found == nil {
            let place = start(of: number)
            let next = bytes.number(at: place + 2)
            if next == number + 1, bytes[place + 4] == 7 { found = number }
        }
        let first = try #require(found)
        // Cells of 8 bytes that overlap, each with 1,003 bytes here and 512 pages there.
        let size = 1_003 + 512 * (Self.pageByteCount - 4)
        var cell: [UInt8] = []
        for place in [3, 2, 1, 0] {
            let bits = UInt8(truncatingIfNeeded: size >> (7 * place)) & 0x7F
            cell.append(place > 0 ? bits | 0x80 : bits)
        }
        var page = [UInt8](repeating: 0, count: Self.pageByteCount)
        page[0] = 0x0D
        page.put(120, at: 3, count: 2)
        for index in 0..<120 {
            let place = 1_024 + 8 * index
            page.put(place, at: 8 + 2 * index, count: 2)
            page.replaceSubrange(place..<place + 4, with: cell)
            page[place + 4] = 1
            page.put(first, at: place + 5 + 1_003, count: 4)
        }
        for _ in 0..<400 { bytes += page }
        try write(bytes, to: long.database)
        _ = try long.salvage(to: target)
        #expect(try target.contents().changes == expected)
    }

    @Test func `pages that lead to each other in a circle end`() throws {
        let table = try PageTable(store.database, pageCount: 1_000)
        let root = try #require(table.interiors.first)
        try change { bytes in
            // Every leaf becomes a page that leads to all the others, and to the root, hundreds of times.
            let children = table.leaves + [root]
            for leaf in table.leaves {
                let page = start(of: leaf)
                bytes[page] = 0x05
                let count = Self.pageByteCount / 8
                bytes.put(count, at: page + 3, count: 2)
                bytes.put(root, at: page + 8, count: 4)
                for index in 0..<count {
                    let place = 12 + 2 * count + 5 * index
                    bytes.put(place, at: page + 12 + 2 * index, count: 2)
                    bytes.put(children[index % children.count], at: page + place, count: 4)
                    bytes[page + place + 4] = 1
                }
            }
        }
        let (_, summary) = try store.salvage(to: target)
        #expect(summary.rowCount < 900 && !summary.isWhole)
    }

    @Test func `a free list that leads back to itself, and beyond the file, ends`() throws {
        let leaf = try leaf()
        try change { bytes in
            bytes.put(leaf, at: 32, count: 4)
            let page = start(of: leaf)
            bytes.put(leaf, at: page, count: 4)
            let count = Self.pageByteCount / 4 - 2
            bytes.put(count, at: page + 4, count: 4)
            for index in 0..<count {
                bytes.put(1 << 31 + index, at: page + 8 + 4 * index, count: 4)
            }
        }
        try expectTheRest()
    }

    @Test func `pointers that all point at one row make one row of it`() throws {
        let leaf = try leaf()
        let before = try store.contents().changes.count
        var count = 0
        try change { bytes in
            let page = start(of: leaf)
            count = bytes.number(at: page + 3)
            let place = bytes.number(at: page + 8)
            for index in 0..<count { bytes.put(place, at: page + 8 + 2 * index, count: 2) }
        }
        let (_, summary) = try store.salvage(to: target)
        // What stood behind the pointers before may be a row more.
        #expect(summary.rowCount >= Int64(before - count + 1))
        #expect(summary.rowCount < Int64(before - count + 10))
    }

    @Test func `a file that is long for its holes takes no longer`() throws {
        let expected = try store.contents().changes
        let pageCount = try readFile(store.database).count / Self.pageByteCount
        let leaf = try leaf()
        try #require(truncate(store.database, 1 << 42) == 0)
        let (lines, summary) = try store.salvage(to: target)
        #expect(summary.isWhole && lines == [])
        #expect(try target.contents().changes == expected)
        // What is not there is named as one thing.
        let other = try TemporaryStore()
        let descriptor = open(store.database, O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let zeros = [UInt8](repeating: 0, count: 64)
        try #require(pwrite(descriptor, zeros, 64, off_t(start(of: leaf))) == 64)
        let (sentences, second) = try store.salvage(to: other)
        #expect(!second.isWhole)
        let last = (1 << 42) / Self.pageByteCount
        let missing = "pages \(pageCount + 1) to \(last) cannot be assigned to any table"
        #expect(sentences.contains(missing), "\(sentences)")
    }

    @Test func `a log that says there are four billion pages takes no longer`() throws {
        let killed = try TemporaryStore()
        try killed.crashAfterHistory(commitCount: 40, seed: 3)
        let expected = try killed.contents().changes
        let crashed = try TemporaryStore()
        try crashed.crashAfterHistory(commitCount: 40, seed: 3)
        var log = try readFile(crashed.log)
        try #require(log.count > 32)
        log.restampLastFrame(pageCount: Int(UInt32.max))
        try write(log, to: crashed.log)
        let (_, summary) = try crashed.salvage(to: target)
        #expect(summary.rowCount == Int64(expected.count))
    }

    @Test(
        arguments: ["compacted revision", "least revision", "rows at a clean stop"],
        ["9223372036854775807", "-9223372036854775808"]
    )
    func `a number that no store comes to is not believed`(name: String, value: String) throws {
        let sum = castagnoli(Array("\(name)\0\(value)".utf8))
        try Stranger(store.database).run(
            "INSERT OR REPLACE INTO meta VALUES('\(name)', '\(value)', \(sum))"
        )
        let (_, summary) = try store.salvage(to: target)
        #expect(summary.rowCount == 900)
        #expect(summary.revision < 1 << 53)
    }
}

extension [UInt8] {
    fileprivate mutating func put(_ number: Int, at place: Int, count: Int) {
        for index in 0..<count {
            self[place + index] = UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - index)))
        }
    }

    fileprivate func number(at place: Int) -> Int { Int(self[place]) << 8 | Int(self[place + 1]) }

    private func word(_ place: Int, isBigEndian: Bool) -> UInt32 {
        let word = withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: UInt32.self) }
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// Gives the last commit of a log another count of pages, and the checksum that goes with it.
    /// https://www.sqlite.org/fileformat2.html#walformat
    fileprivate mutating func restampLastFrame(pageCount: Int) {
        let isBigEndian = self[3] & 1 == 1
        let salts = self[16..<24]
        var (first, second) = (UInt32(0), UInt32(0))
        func sum(_ range: Range<Int>) {
            for place in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
                first &+= word(place, isBigEndian: isBigEndian) &+ second
                second &+= word(place + 4, isBigEndian: isBigEndian) &+ first
            }
        }
        sum(0..<24)
        var last: (start: Int, first: UInt32, second: UInt32)?
        var start = 32
        while start + 24 + pageByteCount <= count, self[start + 8..<start + 16] == salts {
            let before = (first, second)
            sum(start..<start + 8)
            sum(start + 24..<start + 24 + pageByteCount)
            if number32(start + 16) != first || number32(start + 20) != second { break }
            if number32(start + 4) > 0 { last = (start, before.0, before.1) }
            start += 24 + pageByteCount
        }
        guard let last else { return }
        (first, second) = (last.first, last.second)
        put(pageCount, at: last.start + 4, count: 4)
        sum(last.start..<last.start + 8)
        sum(last.start + 24..<last.start + 24 + pageByteCount)
        put(Int(first), at: last.start + 16, count: 4)
        put(Int(second), at: last.start + 20, count: 4)
    }

    private func number32(_ place: Int) -> UInt32 { word(place, isBigEndian: true) }
}
