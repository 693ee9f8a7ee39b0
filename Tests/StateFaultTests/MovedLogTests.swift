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

    private func commit(_ revision: Int64) throws {
        let change = BuiltBatch.Change(
            revision: revision,
            key: Array("k\(revision)".utf8),
            value: [UInt8](repeating: UInt8(revision % 256), count: 300),
            created: revision,
            version: 1,
            time: Int64(time(nil)) * 1_000,
            previousRevision: 0
        )
        try BuiltBatch([change]).commit(to: backing)
    }

    /// Commits until the log is due.
    ///
    /// - Returns: The newest revision.
    private func fill() throws -> Int64 {
        var newest: Int64 = 0
        while !backing.needsMaintenance {
            newest += 1
            try commit(newest)
        }
        return newest
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
}
