import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// The log is moved on a thread of its own while commits go on: what a disk that fails then takes, and what it must not take.
@Suite(.serialized) struct MovedLogTests {
    private let directory: TemporaryDirectory
    private let faults: Faults
    private let data: String
    private let backing: SQLiteBacking

    init() throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
        faults = try Faults(below: data)
        var limits = LogLimits()
        limits.checkpointByteCount = 64 << 10
        limits.keptByteCount = 128 << 10
        backing = SQLiteBacking(directory: data, logLimits: limits)
        _ = try backing.load { _ in }
    }

    private func commit(
        _ revision: Int64,
        to other: SQLiteBacking? = nil,
        byteCount: Int = 300
    ) throws {
        let change = BuiltBatch.Change(
            revision: revision,
            key: Array("k\(revision)".utf8),
            value: [UInt8](repeating: UInt8(revision % 256), count: byteCount),
            created: revision,
            version: 1,
            time: Int64(time(nil)) * 1_000,
            previousRevision: 0
        )
        try BuiltBatch([change]).commit(to: other ?? backing)
    }

    /// Commits until the log is due.
    ///
    /// - Returns: The newest revision.
    private func fill(
        _ other: SQLiteBacking? = nil,
        after revision: Int64 = 0,
        byteCount: Int = 300
    ) throws -> Int64 {
        var newest = revision
        while !(other ?? backing).needsMaintenance {
            newest += 1
            try commit(newest, to: other, byteCount: byteCount)
        }
        return newest
    }

    /// Another store, and the disk that it is on.
    private func makeStore(
        _ path: String,
        _ set: (inout LogLimits) -> Void
    ) throws -> (SQLiteBacking, Faults) {
        let faults = try Faults(below: path)
        var limits = LogLimits()
        limits.checkpointByteCount = 64 << 10
        set(&limits)
        let backing = SQLiteBacking(directory: path, logLimits: limits)
        _ = try backing.load { _ in }
        return (backing, faults)
    }

    /// Has most of the log moved, and waits for that.
    private func move() throws {
        backing.maintain()
        try #require(eventually { backing.needsMaintenance })
    }

    /// It would take a commit that is just being written from the log, and that commit's own sync would succeed.
    @Test func `durable before told: the thread that moves the log does not sync it`() throws {
        let newest = try fill()
        let syncCount = faults.count(of: .sync)
        faults.fail(.sync, of: .log, .reverting)
        try move()
        #expect(faults.failedCount == 0)
        #expect(faults.count(of: .sync) == syncCount + 1, "only the database is synced")
        faults.heal()
        backing.maintain()
        try commit(newest + 1)
        backing.close()
        #expect(try StoredHistory(data).rows.map(\.revision) == Array(1...newest + 1))
    }

    /// SQLite counts what it has moved, and would not move it again.
    @Test(arguments: Seed.each(8))
    func `durable before told: what a failed sync takes from the database is moved again`(
        seed: UInt64
    ) throws {
        let newest = try fill()
        faults.fail(.sync, of: .database, .reverting)
        try move()
        try #require(faults.failedCount == 1)
        backing.maintain()
        let error = try #require(throws: StateError.self) { try commit(newest + 1) }
        #expect(error.isOutcomeUnknown)
        try backing.reopen(after: newest) { _ in }
        try commit(newest + 1)
        let target = directory.path(of: "cut")
        try faults.cutPower(at: faults.place + 1, leaving: target, seed: seed)
        try commit(newest + 2)
        backing.close()
        let left = try StoredHistory(target).rows.map(\.revision)
        let expected = Array(1...newest + 1)
        #expect(Array(left.prefix(expected.count)) == expected, "STATED_TEST_SEED=\(seed)")
    }

    /// Pages that were lost may not be read, or the next commit builds on older ones.
    @Test(arguments: Seed.each(4))
    func `atomic: pages are read from the database once they are synced there`(seed: UInt64) throws
    {
        let newest = try fill()
        faults.fail(.sync, of: .database, .reverting)
        try move()
        try #require(faults.failedCount == 1)
        var other: SQLiteConnection? = try SQLiteConnection(path: "\(data)/stated.db")
        #expect(try other?.text("PRAGMA integrity_check") == "ok")
        let rows = try other?.text("SELECT count(*) || ' of ' || max(revision) FROM history")
        other = nil
        #expect(rows == "\(newest) of \(newest)", "STATED_TEST_SEED=\(seed)")
        try commit(newest + 1)
        backing.close()
        #expect(try StoredHistory(data).rows.map(\.revision) == Array(1...newest + 1))
    }

    /// SQLite syncs the database only if it has moved all of the log, and here another process reads.
    @Test(arguments: Seed.each(4))
    func `durable before told: a part of the log is synced where it is moved`(seed: UInt64) throws {
        let store = directory.path(of: "part")
        let (backing, faults) = try makeStore(store) { $0.movesAside = false }
        for revision in 1...8 as ClosedRange<Int64> { try commit(revision, to: backing) }
        var reader: SQLiteConnection? = try SQLiteConnection(path: "\(store)/stated.db")
        try reader?.execute("BEGIN")
        #expect(try reader?.text("SELECT count(*) FROM history") == "8")
        let newest = try fill(backing, after: 8)
        faults.fail(.sync, of: .database, .reverting)
        backing.maintain()
        #expect(faults.failedCount == 1)
        let error = try #require(throws: StateError.self) { try commit(newest + 1, to: backing) }
        #expect(error.isOutcomeUnknown)
        reader = nil
        try backing.reopen(after: newest) { _ in }
        try commit(newest + 1, to: backing)
        backing.close()
        #expect(try StoredHistory(store).rows.map(\.revision) == Array(1...newest + 1))
    }

    /// Pages are synced in pieces; what a failed one takes is not counted as moved.
    @Test(arguments: Seed.each(4))
    func `durable before told: a sync that fails between the pages takes none of them`(
        seed: UInt64
    ) throws {
        let store = directory.path(of: "long")
        let (backing, faults) = try makeStore(store) { $0.checkpointByteCount = 1 << 20 }
        let newest = try fill(backing, byteCount: 50_000)
        faults.fail(.sync, number: 2, of: .database, .reverting)
        backing.maintain()
        try #require(eventually { backing.needsMaintenance })
        try #require(faults.failedCount == 1)
        var other: SQLiteConnection? = try SQLiteConnection(path: "\(store)/stated.db")
        #expect(try other?.text("PRAGMA integrity_check") == "ok")
        other = nil
        try commit(newest + 1, to: backing)
        backing.maintain()
        let error = try #require(throws: StateError.self) { try commit(newest + 2, to: backing) }
        #expect(error.isOutcomeUnknown)
        try backing.reopen(after: newest + 1) { _ in }
        backing.close()
        let left = try StoredHistory(store).rows.map(\.revision)
        #expect(left == Array(1...newest + 1), "STATED_TEST_SEED=\(seed)")
    }

    /// A commit waits for the thread then; what it lost must not be read, and the log not be restarted.
    @Test(arguments: Seed.each(4))
    func `durable before told: a failed sync is known before a commit into a full log`(
        seed: UInt64
    ) throws {
        let store = directory.path(of: "full")
        let (backing, faults) = try makeStore(store) { $0.byteCount = 96 << 10 }
        var newest = try fill(backing)
        faults.fail(.sync, of: .database, .reverting)
        backing.maintain()
        try #require(eventually { faults.failedCount == 1 })
        let error = try #require(throws: StateError.self) {
            for _ in 0..<100 {
                try commit(newest + 1, to: backing)
                newest += 1
            }
        }
        #expect(error.isOutcomeUnknown)
        try backing.reopen(after: newest) { _ in }
        try commit(newest + 1, to: backing)
        backing.close()
        let left = try StoredHistory(store).rows.map(\.revision)
        #expect(left == Array(1...newest + 1), "STATED_TEST_SEED=\(seed)")
    }

    /// It waits for the thread, too, and would make a new database of pages that were lost.
    @Test(arguments: Seed.each(4))
    func `durable before told: a failed sync is known before the database is rewritten`(
        seed: UInt64
    ) throws {
        let newest = try fill()
        faults.fail(.sync, of: .database, .reverting)
        backing.maintain()
        try #require(eventually { faults.failedCount == 1 })
        let writeCount = faults.count(of: .write)
        let error = try #require(throws: StateError.self) { try backing.shrink() }
        #expect(error.isOutcomeUnknown && faults.count(of: .write) == writeCount)
        try backing.reopen(after: newest) { _ in }
        backing.close()
        let left = try StoredHistory(data).rows.map(\.revision)
        #expect(left == Array(1...newest), "STATED_TEST_SEED=\(seed)")
    }
}
