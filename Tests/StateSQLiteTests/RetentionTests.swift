import Glibc
import StateEngine
import StateLog
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
        let backing = store.backing {
            $0.history = limits
            $0.log.segmentByteCount = 24 << 10
            $0.log.largeSegmentByteCount = 48 << 10
            $0.settling.logByteCount = 100_000
        }
        return (try LocalKeyspace(backing: backing), backing)
    }

    private func overwrite(_ keyspace: LocalKeyspace, _ count: Int, byteCount: Int = 64) throws {
        let value = [UInt8](repeating: 1, count: byteCount)
        for start in stride(from: 0, to: count, by: 20) {
            try keyspace.apply((0..<20).map { .set(try Key("key/\((start + $0) % 1_000)"), value) })
        }
    }

    /// How many changes the history has.
    private func changeCount(_ backing: SQLiteBacking) throws -> Int {
        var count = 0
        let history = try backing.openHistory()
        try history.snapshot { _ in
            _ = try history.forEachChange(after: .end(of: 0), through: .max) { _ in
                count += 1
                return true
            }
        }
        return count
    }

    @Test func `by changes: the newest of them are there, and most before them are gone`() throws {
        let (keyspace, backing) = try open { $0.changeCount = 2_000 }
        defer { keyspace.close() }
        try overwrite(keyspace, 20_000)
        let compacted = try keyspace.compact().compacted
        #expect(compacted <= keyspace.revision - 100 && compacted > keyspace.revision - 300)
        let count = try changeCount(backing)
        #expect(count >= 2_000 && count < 6_000)
    }

    @Test func `by bytes`() throws {
        let (keyspace, backing) = try open { $0.byteCount = 1 << 20 }
        defer { keyspace.close() }
        try overwrite(keyspace, 20_000, byteCount: 900)
        try keyspace.compact()
        let count = try changeCount(backing)
        // What is carried counts, too.
        #expect(count > 500 && count < 3_000, "\(count)")
    }

    @Test func `nobody has to ask: what nobody keeps leaves the disk`() throws {
        let (keyspace, backing) = try open { $0.changeCount = 1_000 }
        defer { keyspace.close() }
        try overwrite(keyspace, 20_000)
        // As the daemon commits: on the commit thread.
        keyspace.submit([.set("key/0", [1])]) { _ in }
        #expect(eventually { (try? changeCount(backing)) ?? .max < 6_000 })
        #expect(backing.status.failure == nil)
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
                largest = max(largest, byteCount(backing))
            }
            waiting.update { $0 += 1 }
            keyspace.submit([.set(keys[number % 1_000], value)]) { _ in waiting.update { $0 -= 1 } }
        }
        try #require(waiting.wait(until: { $0 == 0 }))
        largest = max(largest, byteCount(backing))
        // Three quarters more than what is kept, the live values thrice, and what comes while it settles.
        let bound = Int64(retention) * 120 * 7 / 4 + 3 * 1_000 * 200 + 4 << 20
        #expect(largest < bound, "\(largest) of \(bound)")
        #expect(eventually { keyspace.withCore { $0.revisions.compacted } > 0 })
    }

    private func byteCount(_ backing: SQLiteBacking) -> Int64 {
        let status = backing.status
        return status.databaseByteCount + status.logByteCount
    }
}
