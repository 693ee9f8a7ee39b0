import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// How much of the past a store keeps by itself.
struct RetentionTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func open(
        _ adjust: (inout HistoryLimits) -> Void
    ) throws -> (LocalKeyspace, SQLiteBacking) {
        var limits = HistoryLimits()
        adjust(&limits)
        let backing = SQLiteBacking(
            directory: store.directory,
            logLimits: LogLimits(),
            history: limits
        )
        return (try LocalKeyspace(backing: backing), backing)
    }

    private func overwrite(_ keyspace: LocalKeyspace, _ count: Int, byteCount: Int = 64) throws {
        let value = [UInt8](repeating: 1, count: byteCount)
        for start in stride(from: 0, to: count, by: 20) {
            try keyspace.apply((0..<20).map { .set(try Key("key/\((start + $0) % 1_000)"), value) })
        }
    }

    @Test func `by changes: the newest of them are there, and most before them are gone`() throws {
        let (keyspace, backing) = try open { $0.changeCount = 2_000 }
        defer { keyspace.close() }
        try overwrite(keyspace, 20_000)
        let compacted = try keyspace.compact().compacted
        #expect(compacted <= keyspace.revision - 100 && compacted > keyspace.revision - 110)
        #expect(backing.historyStatus.rowCount <= 1_000 + 2_200)
        #expect(backing.historyStatus.compacted == compacted)
        #expect(backing.historyStatus.freeByteCount > 0)
    }

    @Test func `by bytes`() throws {
        let (keyspace, backing) = try open { $0.byteCount = 1 << 20 }
        defer { keyspace.close() }
        try overwrite(keyspace, 20_000, byteCount: 900)
        try keyspace.compact()
        #expect(backing.historyStatus.rowCount < 1_000 + 1_200)
        #expect(backing.historyStatus.rowCount > 1_000)
    }

    @Test func `by age: nothing that is young goes, and all that is old`() throws {
        let (keyspace, backing) = try open { $0.age = .seconds(3_600) }
        try overwrite(keyspace, 5_000)
        #expect(try keyspace.compact().compacted == 0)
        #expect(backing.historyStatus.rowCount == 5_000)
        keyspace.close()
        let (later, again) = try open { $0.age = .zero }
        defer { later.close() }
        #expect(try later.compact().compacted == later.revision)
        // The newest row stays, and what it superseded.
        #expect(again.historyStatus.rowCount == 1_001)
    }

    /// A backing that keeps an hour, on a clock that the test turns.
    private func hourly(_ clock: Observed<Int64>) -> SQLiteBacking {
        var limits = HistoryLimits()
        limits.age = .seconds(3_600)
        let backing = SQLiteBacking(
            directory: store.directory,
            logLimits: LogLimits(),
            history: limits
        )
        backing.clock = { clock.current }
        return backing
    }

    /// From where the history is whole, once nothing is left to compact.
    private func compacted(_ backing: SQLiteBacking) throws -> Int64 {
        while !(try backing.compact { true }.isDone) {}
        return backing.historyStatus.compacted
    }

    /// Commits of one key: before a wall clock is set by so many seconds, and after it is right again.
    private func commit(
        to backing: SQLiteBacking,
        _ rowCount: Int64,
        jumping seconds: Int64
    ) throws {
        let now = Int64(time(nil)) * 1_000
        for revision in 0...2 * rowCount {
            let change = BuiltBatch.Change(
                revision: revision + 1,
                key: Array("k".utf8),
                value: [1],
                created: 1,
                version: revision + 1,
                time: now + (revision == rowCount ? seconds * 1_000 : 0),
                previousRevision: revision
            )
            try BuiltBatch([change]).commit(to: backing)
        }
    }

    @Test(arguments: [20, 3_000] as [Int64], [-864_000, 31_536_000] as [Int64])
    func `by age: one commit under a wall clock that is wrong makes nothing old, and nothing young`(
        rowCount: Int64,
        seconds: Int64
    ) throws {
        let clock = Observed<Int64>(5_000_000)
        let backing = hourly(clock)
        _ = try backing.load { _ in }
        try commit(to: backing, rowCount, jumping: seconds)
        #expect(try compacted(backing) == 0)
        clock.update { $0 += 3_000_000 }
        #expect(try compacted(backing) == 0)
        clock.update { $0 += 700_000 }
        #expect(try compacted(backing) == 2 * rowCount + 1)
        backing.close()
    }

    @Test(arguments: [20, 3_000] as [Int64], [-864_000, 31_536_000] as [Int64])
    func `by age: a start is not misled by the times that rows have`(
        rowCount: Int64,
        seconds: Int64
    ) throws {
        let clock = Observed<Int64>(5_000_000)
        let first = hourly(clock)
        _ = try first.load { _ in }
        try commit(to: first, rowCount, jumping: seconds)
        first.close()
        // After a boot the clock begins anew.
        clock.update { $0 = 1_000 }
        let backing = hourly(clock)
        _ = try backing.load { _ in }
        #expect(try compacted(backing) == 0)
        clock.update { $0 += 2_000_000 }
        #expect(try compacted(backing) == 0)
        clock.update { $0 += 1_700_000 }
        #expect(try compacted(backing) == 2 * rowCount + 1)
        backing.close()
    }

    @Test func `with nothing to be kept only live entries stay, also after a start`() throws {
        let (keyspace, backing) = try open { $0.changeCount = 0 }
        try overwrite(keyspace, 5_000)
        #expect(try keyspace.compact().compacted == keyspace.revision)
        #expect(backing.historyStatus.rowCount == 1_001)
        try overwrite(keyspace, 2_000)
        keyspace.close()
        let (again, after) = try open { $0.changeCount = 0 }
        defer { again.close() }
        #expect(try again.compact().compacted == again.revision)
        #expect(after.historyStatus.rowCount == 1_001)
        #expect(try store.check().findings == [])
    }

    @Test func `nobody has to ask: it is done while there is nothing to commit`() throws {
        let (keyspace, backing) = try open { $0.changeCount = 1_000 }
        defer { keyspace.close() }
        try overwrite(keyspace, 20_000)
        // As the daemon commits: on the commit thread, which then sees what there is.
        keyspace.submit([.set("key/0", [1])]) { _ in }
        #expect(eventually { backing.historyStatus.rowCount <= 1_000 + 2 * 1_000 + 1_300 })
        #expect(backing.historyStatus.failure == nil)
    }

    /// `STATED_COMPACTION_WRITES=5000000` is the long form, with a retention of 100,000 changes.
    @Test func `under constant load the store stays below its bound`() throws {
        let writeCount = Extent.named("STATED_COMPACTION_WRITES", short: 300_000)
        let retention = min(100_000, writeCount / 10)
        let (keyspace, backing) = try open { $0.changeCount = retention }
        defer { keyspace.close() }
        let waiting = Observed(0)
        var largest: Int64 = 0
        let value = [UInt8](repeating: 1, count: 64)
        let keys = try (0..<1_000).map { try Key("key/\($0)") }
        for number in 0..<writeCount {
            // As many as 50 clients with pipelines of 16 have under way.
            if number % 800 == 0 {
                try #require(waiting.wait(until: { $0 < 800 }))
                largest = max(largest, backing.status.databaseByteCount)
            }
            waiting.update { $0 += 1 }
            keyspace.submit([.set(keys[number % 1_000], value)]) { _ in waiting.update { $0 -= 1 } }
        }
        try #require(waiting.wait(until: { $0 == 0 }))
        largest = max(largest, backing.status.databaseByteCount)
        // 240 bytes a row, of which twice the retention may be there.
        let bound = Int64(retention) * 2 * 240 + 2 << 20
        #expect(largest < min(bound, 100 << 20))
        let compacted = keyspace.withCore { $0.revisions.compacted }
        #expect(compacted > keyspace.revision - Int64(retention) * 2)
        #expect(backing.historyStatus.rowCount < Int64(retention) * 2 + 1_000)
    }
}
