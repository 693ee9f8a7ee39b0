import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// What is whole of a damaged store is there afterwards, and what is not is named.
struct SalvageTests {
    let store: TemporaryStore
    let target: TemporaryStore

    init() throws {
        store = try TemporaryStore()
        target = try TemporaryStore()
    }

    /// Overwrites bytes of the database.
    private func overwrite(_ range: Range<Int>, with byte: UInt8 = 0) throws {
        var bytes = try readFile(store.database)
        for index in range { bytes[index] = byte }
        try write(bytes, to: store.database)
    }

    /// The newest change of each key.
    private func newest(_ changes: [Contents.Change]) -> [[UInt8]: Contents.Change] {
        Dictionary(changes.map { ($0.plain.key, $0) }) { $1 }
    }

    @Test func `a store that is whole is copied whole, as another store`() throws {
        try store.fillWithHistory(commitCount: 60, seed: 1)
        let expected = try store.contents()
        let files = try store.files()
        let (lines, summary) = try store.salvage(to: target)
        #expect(lines == [])
        #expect(summary.isWhole && summary.lostRowCount == 0)
        #expect(try store.files() == files)
        #expect(names(in: target.directory).sorted() == ["lock", "stated.db"])
        let found = try target.contents()
        #expect(found.changes == expected.changes)
        #expect(found.loaded.epoch != expected.loaded.epoch)
        #expect(found.loaded.revision == expected.loaded.revision + 1 << 32)
        #expect(summary.revision == found.loaded.revision)
        // Another start is the same store, and it takes writes.
        #expect(try target.contents() == found)
        let keyspace = try LocalKeyspace(backing: target.backing())
        try keyspace.apply([.set("more", [1])])
        keyspace.close()
        #expect(try target.check().findings == [])
    }

    @Test func `what a killed process had deferred is copied too`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        let changes = sampleChanges(30)
        try BuiltBatch(Array(changes[..<20])).commit(to: backing)
        for change in changes[20...] { #expect(BuiltBatch([change]).keep(in: backing)) }
        _ = consume backing
        let files = try store.files()
        let (lines, summary) = try store.salvage(to: target)
        #expect(lines == [] && summary.isWhole && summary.rowCount == 30)
        #expect(try store.files() == files)
        let found = try target.contents()
        #expect(found.changes.map(\.plain) == changes)
        #expect(found.loaded.revision == 30 + 1 << 32)
    }

    @Test func `what only the log of a killed store has is copied too`() throws {
        try store.crashAfterHistory(commitCount: 80, seed: 2)
        try #require(try readFile(store.log).count > 0)
        let files = try store.files()
        let (lines, summary) = try store.salvage(to: target)
        #expect(lines == [] && summary.isWhole)
        #expect(try store.files() == files)
        let expected = try store.contents().changes
        #expect(expected.count > 100)
        #expect(try target.contents().changes == expected)
    }

    @Test func `a log without its database gives what it has`() throws {
        try store.crashAfterHistory(commitCount: 40, seed: 3)
        let damaged = try TemporaryStore()
        try store.copy(to: damaged)
        unlink(damaged.database)
        unlink(damaged.database + "-shm")
        let (_, summary) = try damaged.salvage(to: target)
        let found = try target.contents().changes
        let expected = try store.contents().changes
        #expect(!found.isEmpty && summary.rowCount == Int64(found.count))
        #expect(Set(found).isSubset(of: expected))
    }

    @Test(arguments: [0..<100, 0..<pageByteCount])
    func `a header that is gone costs nothing`(range: Range<Int>) throws {
        try store.fillWithHistory(commitCount: 100, seed: 4)
        let expected = try store.contents().changes
        try overwrite(range)
        #expect(throws: StateError.self) { try store.contents() }
        #expect(try store.salvage(to: target).summary.isWhole)
        #expect(try target.contents().changes == expected)
    }

    /// The row is whole all the same, and what it says that it takes is not taken from the others.
    @Test func `a row that says that it is as long as a page costs no other row`() throws {
        try store.fillWithHistory(commitCount: 100, seed: 9)
        let expected = try store.contents().changes
        let whole = try readFile(store.database)
        let pages = try PageTable(store.database, pageCount: whole.count / pageByteCount)
        var altered = 0
        for page in pages.leaves.map({ ($0 - 1) * pageByteCount }) {
            let cellCount = Int(whole[page + 3]) << 8 | Int(whole[page + 4])
            let places = (0..<cellCount).map { index in
                Int(whole[page + 8 + 2 * index]) << 8 | Int(whole[page + 9 + 2 * index])
            }
            // A size of two bytes, of which the first has the higher bits; with one more of them it still ends on the page.
            let cell = places.first { cell in
                cell < 3_900 && whole[page + cell] == 0x81 && whole[page + cell + 1] < 0x80
            }
            guard let place = cell.map({ page + $0 }) else { continue }
            altered += 1
            var bytes = whole
            bytes[place] |= 0x20
            try write(bytes, to: store.database)
            let target = try TemporaryStore()
            _ = try store.salvage(to: target)
            let lost = Set(expected).subtracting(try target.contents().changes)
            #expect(lost.count <= 1, "page \(page / pageByteCount + 1): \(lost.count) rows")
        }
        #expect(altered > 0)
    }

    @Test func `a page that is gone costs its own rows, and they are listed`() throws {
        try store.fillWithHistory(commitCount: 400, seed: 5)
        let expected = try store.contents()
        let pages = try PageTable(store.database, pageCount: 1_000)
        let page = pages.leaves[pages.leaves.count / 2]
        try overwrite((page - 1) * pageByteCount..<page * pageByteCount)
        let (lines, summary) = try store.salvage(to: target)
        let found = try target.contents()
        let lost = expected.changes.filter { !found.changes.contains($0) }
        #expect((2...200).contains(lost.count))
        #expect(summary.lostRowCount == Int64(lost.count) && !summary.isWhole)
        #expect(found.changes == expected.changes.filter { !lost.contains($0) })
        // They lay beside each other: one gap in the numbers, which begin at 1.
        let index = try #require(expected.changes.firstIndex(of: lost[0]))
        let numbers = "rows \(index + 1) to \(index + lost.count)"
        #expect(lines.first?.hasPrefix("lost: \(numbers), of revisions ") == true, "\(lines)")
        // Those that a whole row superseded are named with their keys.
        for change in lost {
            let next = found.changes.first {
                $0.plain.previousRevision == change.plain.revision
                    && $0.plain.previousOrdinal == change.plain.ordinal
            }
            guard let next else { continue }
            let line =
                "lost: revision \(change.plain.revision) of key "
                + change.plain.key.withUnsafeBytes { StateError.quoted($0, upTo: 1_024) }
                + "; revision \(next.plain.revision), which superseded it, is intact"
            #expect(lines.contains(line))
        }
        // What is served of each key is the newest row that is whole.
        let keyspace = try LocalKeyspace(backing: target.backing())
        defer { keyspace.close() }
        for (key, change) in newest(found.changes) {
            #expect(try keyspace.entry(for: Key(bytes: key))?.value == change.plain.value)
        }
    }

    @Test func `a damaged row is named by what it says, and by what is served instead`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.apply([.set("audio/volume", Array("0.7".utf8))])
        try keyspace.apply([.set("audio/volume", Array("a value to find".utf8))])
        try keyspace.apply([.set("other", [1])])
        keyspace.close()
        let bytes = try readFile(store.database)
        let place = try #require(
            bytes.indices.first { bytes[$0...].starts(with: Array("a value to find".utf8)) }
        )
        try overwrite(place..<place + 1, with: 0x41)
        let (lines, summary) = try store.salvage(to: target)
        #expect(
            lines == [
                "lost: row 2, of revisions 1 to 2",
                "damaged: row 2 on page 2, apparently revision 2 of key 'audio/volume'; the "
                    + "newest intact row of that key has revision 1",
                "the last clean stop left 3 rows, 2 are intact",
            ]
        )
        #expect(summary.lostRowCount == 1)
        #expect(try target.check().findings == [])
    }

    /// What leads to the leaves, and what leads to the pages that are free.
    @Test(arguments: [true, false])
    func `what compaction took away does not come back, what it left is there`(
        damagesTree: Bool
    ) throws {
        try store.fill(sampleChanges(900))
        try store.compact(200..<600)
        let expected = try store.contents().changes
        try #require(expected.count == 500)
        let pages = try PageTable(store.database, pageCount: 1_000)
        let root = try #require(pages.interiors.first)
        let trunk = try readFile(store.database)[35]
        try #require(trunk > 0)
        if damagesTree {
            try overwrite((root - 1) * pageByteCount..<(root - 1) * pageByteCount + 1, with: 0xFF)
        } else {
            // A leaf of the history is taken for the list.
            try overwrite(35..<36, with: UInt8(pages.leaves[0]))
        }
        #expect(throws: StateError.self) { try store.contents() }
        #expect(try store.salvage(to: target).summary.isWhole)
        #expect(try target.contents().changes == expected)
    }

    enum Place: CaseIterable { case leaf, interior, beyond }

    /// The free page that the list lacks then is one that nothing leads to, and its rows are old.
    @Test(arguments: Place.allCases)
    func `an entry of the free list that is damaged brings nothing back`(place: Place) throws {
        try store.fill(sampleChanges(900))
        try store.compact(200..<600)
        let expected = try store.contents().changes
        let pages = try PageTable(store.database, pageCount: 1_000)
        let bytes = try readFile(store.database)
        let trunk = (Int(bytes[34]) << 8 | Int(bytes[35])) - 1
        try #require(trunk > 0 && bytes[trunk * pageByteCount + 7] > 0)
        let number =
            switch place {
            case .leaf: try #require(pages.leaves.first)
            case .interior: try #require(pages.interiors.first)
            case .beyond: 0xFFFF
            }
        let entry = trunk * pageByteCount + 8
        try overwrite(entry + 2..<entry + 3, with: UInt8(number >> 8))
        try overwrite(entry + 3..<entry + 4, with: UInt8(number & 0xFF))
        #expect(throws: StateError.self) { try store.contents() }
        #expect(try store.salvage(to: target).summary.isWhole)
        #expect(try target.contents().changes == expected)
    }

    /// Where rows went from the end of a page, what pointed at them still stands behind its last row.
    @Test func `a deleted key that was compacted does not come back`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        for number in 0..<60 { try keyspace.apply([.set(Key("kept\(number)"), [1])]) }
        for number in 0..<200 { try keyspace.apply([.set("gone", Array("\(number)".utf8))]) }
        try keyspace.apply([.delete("gone")])
        try keyspace.apply([.set("last", [1])])
        try keyspace.compact(to: keyspace.revision)
        keyspace.close()
        let expected = try store.contents().changes
        try #require(expected.count == 61)
        #expect(try store.salvage(to: target).summary.isWhole)
        #expect(try target.contents().changes == expected)
    }

    /// What a leaf says of itself in its first bytes: of which kind it is, and how many rows it has.
    @Test(arguments: ["kind", "count"], [1, 2, 4, 8, 16, 32] as [UInt8])
    func `a page of a compacted store that says wrong things of itself costs no row`(
        place: String,
        mask: UInt8
    ) throws {
        try store.fillWithHistory(commitCount: 400, seed: 11)
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision)
        keyspace.close()
        let expected = try store.contents().changes
        let leaves = try PageTable(store.database, pageCount: 1_000).leaves
        let whole = try readFile(store.database)
        try #require(leaves.count > 2)
        for leaf in leaves {
            var bytes = whole
            bytes[(leaf - 1) * pageByteCount + (place == "kind" ? 0 : 4)] ^= mask
            try write(bytes, to: store.database)
            let target = try TemporaryStore()
            let (lines, summary) = try store.salvage(to: target)
            #expect(summary.isWhole, "page \(leaf): \(lines)")
            let found = try target.contents().changes
            let added = found.filter { !expected.contains($0) }.prefix(3)
            let missing = expected.filter { !found.contains($0) }.prefix(3)
            let isSame = found == expected
            #expect(isSame, "page \(leaf): \(added) too much, \(missing) missing")
        }
    }

    @Test func `a compacted revision that cannot be read makes no row a lost one`() throws {
        try store.fillWithHistory(commitCount: 400, seed: 12)
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.compact(to: keyspace.revision * 9 / 10)
        keyspace.close()
        let expected = try store.contents()
        try damage("compacted revision".utf8)
        let (lines, summary) = try store.salvage(to: target)
        #expect(summary.isWhole && summary.lostRowCount == 0, "\(lines)")
        #expect(lines == [])
        let found = try target.contents()
        let isSame = found.changes == expected.changes
        #expect(isSame)
        // Nobody is told a history that may have holes.
        #expect(found.loaded.compacted >= expected.loaded.revision)
        // With a row less there is a loss, of one row; which of the missing ones it is, nothing tells.
        let damaged = Array(try #require(expected.changes.last?.plain.key))
        try damage(damaged)
        let other = try TemporaryStore()
        let (sentences, second) = try store.salvage(to: other)
        #expect(!second.isWhole && second.lostRowCount >= 1 && second.isCounted)
        #expect(second.rowCount + second.lostRowCount == summary.rowCount)
        #expect(!sentences.contains { $0.hasPrefix("lost: ") }, "\(sentences)")
        #expect(sentences.contains { $0.contains("the compacted revision cannot be read") })
    }

    /// Turns a bit of the first byte wherever these bytes stand in the database.
    private func damage(_ text: some Sequence<UInt8>) throws {
        var bytes = try readFile(store.database)
        let text = Array(text)
        for place in bytes.indices where bytes[place...].starts(with: text) { bytes[place] ^= 1 }
        try write(bytes, to: store.database)
    }

    @Test func `a killed store whose rows nothing counts says that more may be lost`() throws {
        try store.crashAfterHistory(commitCount: 300, seed: 7)
        // Moves the log into the database.
        try Stranger(store.database).run("PRAGMA journal_mode=DELETE")
        let before = try readFile(store.database)
        try write(Array(before.prefix(before.count * 2 / 3)), to: store.database)
        let (lines, summary) = try store.salvage(to: target)
        #expect(!summary.isWhole && !summary.isCounted)
        #expect(lines.contains { $0.contains("may be lost") }, "\(lines)")
        #expect(summary.rowCount > 100)
        #expect(try target.check().findings == [])
    }

    @Test func `a directory with a store in it is refused and left as it is`() throws {
        try store.fillWithHistory(commitCount: 5, seed: 6)
        try target.fill(sampleChanges(3))
        let files = try target.files()
        let error = try #require(throws: StateError.self) { try store.salvage(to: target) }
        #expect(error.code == .storage)
        #expect(error.message.contains(target.database))
        #expect(try target.files() == files)
        #expect(throws: StateError.self) { try store.salvage(to: store) }
    }

    @Test func `a store that a process owns is refused with its pid`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        let error = try #require(throws: StateError.self) { try store.salvage(to: target) }
        #expect(error.code == .locked)
        #expect(error.message.contains("process \(getpid())"))
        #expect(names(in: target.directory) == [])
        backing.close()
    }

    @Test func `what holds nothing of a store is refused, and no new store is left`() throws {
        mkdir(store.directory, 0o700)
        try write([UInt8](repeating: 0x5A, count: 100_000), to: store.database)
        let error = try #require(throws: StateError.self) { try store.salvage(to: target) }
        #expect(error.code == .corrupt)
        #expect(names(in: target.directory) == [])
    }
}

extension TemporaryStore {
    /// Takes rows away, as compaction does with those that are superseded.
    fileprivate func compact(_ revisions: Range<Int>) throws {
        let stranger = try Stranger(database)
        try stranger.run("PRAGMA secure_delete=OFF")
        try stranger.run(
            "DELETE FROM history WHERE revision >= \(revisions.lowerBound) "
                + "AND revision < \(revisions.upperBound)"
        )
        let count = try stranger.run("SELECT count(*) FROM history")[0][0] ?? ""
        for (name, value) in [
            ("compacted revision", "\(revisions.upperBound)"), ("rows at a clean stop", count),
        ] {
            let sum = castagnoli(Array("\(name)\0\(value)".utf8))
            try stranger.run(
                "INSERT OR REPLACE INTO meta VALUES('\(name)', '\(value)', \(sum))"
            )
        }
    }
}

/// CRC-32C, bit by bit.
func castagnoli(_ bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes {
        sum ^= UInt32(byte)
        for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0x82F6_3B78 : 0) }
    }
    return ~sum
}
