import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// How much may wait for compaction while clients write.
struct CompactionNeedTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// A store without a history, in which so many keys have a value and nothing waits.
    private func open(keyCount: Int) throws -> SQLiteBacking {
        var limits = HistoryLimits()
        limits.changeCount = 0
        let backing = SQLiteBacking(
            directory: store.directory,
            logLimits: LogLimits(),
            history: limits
        )
        _ = try backing.load { _ in }
        try set(0..<keyCount, [1], in: backing)
        while try !backing.compact(while: { true }).isDone {}
        try #require(!backing.compactionNeed.isWorthwhile)
        return backing
    }

    /// Sets keys, in one commit; for the second time, if a round is given.
    private func set(
        _ keys: Range<Int>,
        _ value: [UInt8],
        again round: Int? = nil,
        in backing: SQLiteBacking
    ) throws {
        let start = round.map { Int64($0 + 1) * 100_000 } ?? 0
        let changes = keys.map { key in
            BuiltBatch.Change(
                revision: start + Int64(key) + 1,
                key: Array("key/\(key)".utf8),
                value: value,
                created: Int64(key) + 1,
                version: round == nil ? 1 : 2,
                previousRevision: round == nil ? 0 : Int64(key) + 1
            )
        }
        try BuiltBatch(changes).commit(to: backing)
    }

    @Test func `bounded: a quarter of the live rows waits until clients pause`() throws {
        let backing = try open(keyCount: 20_000)
        defer { backing.close() }
        try set(0..<4_900, [2], again: 0, in: backing)
        #expect(backing.compactionNeed.isWorthwhile && !backing.compactionNeed.isDue)
        try set(4_900..<5_100, [2], again: 0, in: backing)
        #expect(backing.compactionNeed.isDue && !backing.compactionNeed.isUrgent)
    }

    @Test func `bounded: of few live rows, a thousand wait`() throws {
        let backing = try open(keyCount: 2_000)
        defer { backing.close() }
        try set(0..<1_000, [2], again: 0, in: backing)
        #expect(!backing.compactionNeed.isDue)
        try set(1_000..<1_100, [2], again: 0, in: backing)
        #expect(backing.compactionNeed.isDue)
    }

    @Test func `bounded: of rows with long values, a thousand wait`() throws {
        let backing = try open(keyCount: 20_000)
        defer { backing.close() }
        let value = [UInt8](repeating: 2, count: 4_096)
        try set(0..<1_900, value, again: 0, in: backing)
        #expect(!backing.compactionNeed.isDue)
        try set(1_900..<2_100, value, again: 0, in: backing)
        #expect(backing.compactionNeed.isDue)
    }
}
