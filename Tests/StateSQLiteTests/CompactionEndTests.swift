import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Compaction comes to an end, and leaves about as much as is needed.
struct CompactionEndTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func change(
        _ revision: Int64,
        _ key: String,
        _ value: [UInt8]?,
        previous: Int64 = 0
    ) -> BuiltBatch.Change {
        BuiltBatch.Change(
            revision: revision,
            key: Array(key.utf8),
            value: value,
            created: previous == 0 ? revision : previous,
            version: value == nil ? 0 : 1,
            previousRevision: previous
        )
    }

    /// Whether nothing is left to compact after so many pieces at most.
    private func ends(
        _ backing: SQLiteBacking,
        within pieceCount: Int = 1_000,
        _ meanwhile: () throws -> Void = {}
    ) throws -> Bool {
        for _ in 0..<pieceCount {
            try meanwhile()
            if try backing.compact(while: { true }).isDone { return true }
        }
        return false
    }

    @Test func `although the newest row of all is a delete, which a start has counted`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.apply([.set("a", [1])])
        try keyspace.apply([.delete("a")])
        try keyspace.compact(to: keyspace.revision)
        keyspace.close()
        let again = try LocalKeyspace(backing: store.backing())
        defer { again.close() }
        // It throws if it is not answered within 20 s.
        #expect(try again.compact().compacted == 2)
    }

    @Test func `although deletes stay, because the store was opened again`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        try BuiltBatch([change(1, "a", [1]), change(2, "b", [1])]).commit(to: backing)
        backing.raiseCompaction(to: 2)
        try #require(try ends(backing))
        try BuiltBatch([change(3, "a", nil, previous: 1), change(4, "b", [2], previous: 2)])
            .commit(to: backing)
        try backing.reopen(after: 4) { _ in }
        backing.raiseCompaction(to: 4)
        #expect(try ends(backing))
        backing.close()
    }

    @Test
    func `although half of all rows are deletes that stay, and the history goes on to be cut`()
        throws
    {
        let backing = store.backing { $0.stretchRowCount = 4 }
        backing.history.changeCount = 0
        _ = try backing.load { _ in }
        let sets = (1...8 as ClosedRange<Int64>).map { change($0, "k\($0)", [1]) }
        try BuiltBatch(sets).commit(to: backing)
        try #require(try ends(backing))
        let deletes = (1...8 as ClosedRange<Int64>).map {
            change(8 + $0, "k\($0)", nil, previous: $0)
        }
        try BuiltBatch(deletes + [change(17, "last", [1])]).commit(to: backing)
        try backing.reopen(after: 17) { _ in }
        #expect(try ends(backing))
        try BuiltBatch([change(18, "last", [2], previous: 17)]).commit(to: backing)
        #expect(try ends(backing))
        #expect(backing.historyStatus.compacted == 18)
        backing.close()
    }

    @Test func `what somebody asked for is done, although writes move the retention on`() throws {
        let backing = store.backing { $0.stretchRowCount = 4 }
        backing.history.changeCount = 0
        _ = try backing.load { _ in }
        var revision: Int64 = 0
        func commit() throws {
            revision += 1
            let change = change(
                revision,
                "k\(revision % 20)",
                [1],
                previous: max(0, revision - 20)
            )
            try BuiltBatch([change]).commit(to: backing)
        }
        for _ in 0..<200 { try commit() }
        backing.raiseCompaction(to: 0)
        #expect(try ends(backing, commit))
        backing.close()
    }

    @Test func `bounded: long superseded values do not wait for the short rows beside them`() throws
    {
        let backing = store.backing()
        backing.history.changeCount = 0
        _ = try backing.load { _ in }
        let value = [UInt8](repeating: 1, count: 100_000)
        for revision in 1...10 as ClosedRange<Int64> {
            var changes: [BuiltBatch.Change] = []
            for number in 0..<409 as Range<Int32> {
                let isLong = number < 9
                let key = isLong ? "long/\(number)" : "short/\(revision)/\(number)"
                var change = change(
                    revision,
                    key,
                    isLong ? value : [1],
                    previous: isLong ? revision - 1 : 0
                )
                change.ordinal = number
                change.previousOrdinal = isLong && revision > 1 ? number : 0
                changes.append(change)
            }
            try BuiltBatch(changes).commit(to: backing)
            try #require(try ends(backing))
        }
        backing.close()
        let rows = try Stranger(store.database).run("SELECT sum(length(value)) FROM history")
        let byteCount = try #require(rows[0][0].flatMap { Int($0) })
        // 900,000 of them are live.
        #expect(byteCount < 3 * 900_000)
    }
}
