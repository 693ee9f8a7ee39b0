import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// A piece of compaction is not synced by itself: what a disk that fails then takes from the log, and what it must not take.
@Suite(.serialized) struct UnsyncedCompactionTests {
    private let directory: TemporaryDirectory
    private let faults: Faults
    private let data: String
    private let backing: SQLiteBacking

    init() throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
        faults = try Faults(below: data)
        var limits = LogLimits()
        // So that the writes come in the same order each time.
        limits.movesAside = false
        // So that sweeps take several transactions, and some rows of each stretch stay.
        limits.stretchRowCount = 8
        limits.checkpointByteCount = 64 << 10
        limits.keptByteCount = 128 << 10
        backing = SQLiteBacking(directory: data, logLimits: limits)
        _ = try backing.load { _ in }
    }

    /// The commit of this revision, to one of 20 keys.
    private func commit(_ revision: Int64) throws {
        let change = BuiltBatch.Change(
            revision: revision,
            key: Array("k\(revision % 20)".utf8),
            value: [UInt8](repeating: UInt8(revision % 256), count: 300),
            created: revision % 20 == 0 ? 20 : revision % 20,
            version: (revision - 1) / 20 + 1,
            time: Int64(time(nil)) * 1_000,
            previousRevision: max(0, revision - 20)
        )
        try BuiltBatch([change]).commit(to: backing)
    }

    /// The same as the commit queue does it: where its outcome is unknown, the store is opened again first.
    private func commitAtLast(_ revision: Int64) throws {
        do {
            try commit(revision)
        } catch let error as StateError where error.isOutcomeUnknown {
            var isThere = false
            try backing.reopen(after: revision - 1) { _ in isThere = true }
            if !isThere { try commit(revision) }
        }
    }

    /// Fills the store, and compacts all but the last ten revisions in one piece.
    ///
    /// - Returns: The newest revision.
    private func fill(_ seed: UInt64) throws -> Int64 {
        let newest = Int64(60 + seed % 16)
        for revision in 1...newest { try commit(revision) }
        backing.raiseCompaction(to: newest - 10)
        _ = try backing.compact { true }
        return newest
    }

    @Test(arguments: Seed.each(16))
    func `durable before told: a sync that fails in a checkpoint takes no later commit back`(
        seed: UInt64
    ) throws {
        let newest = try fill(seed)
        faults.fail(.sync, of: .log, .reverting)
        backing.maintain()
        try #require(faults.failedCount == 1)
        for revision in newest + 1...newest + 4 { try commitAtLast(revision) }
        let target = directory.path(of: "cut")
        try faults.cutPower(at: faults.place + 1, leaving: target, seed: seed)
        try commitAtLast(newest + 5)
        backing.close()
        let left = try StoredHistory(target).rows.map(\.revision)
        #expect(left.suffix(14) == Array(newest - 9...newest + 4), "STATED_TEST_SEED=\(seed)")
    }

    @Test(arguments: Seed.each(16))
    func `while the history is read, too, a store is opened again as the disk has it`(
        seed: UInt64
    ) throws {
        let history = try backing.openHistory()
        let newest = try fill(seed)
        try history.snapshot { #expect($0 == newest - 10) }
        faults.fail(.sync, of: .log, .reverting)
        let error = try #require(throws: StateError.self) { try commit(newest + 1) }
        #expect(error.isOutcomeUnknown)
        var isThere = false
        try backing.reopen(after: newest) { _ in isThere = true }
        if !isThere { try commit(newest + 1) }
        var revisions: [Int64] = []
        try history.snapshot { compacted in
            #expect(compacted == newest - 10)
            let isWhole = try history.forEachChange(
                after: .end(of: compacted),
                through: .max
            ) { change in
                revisions.append(change.revision)
                return true
            }
            #expect(isWhole)
        }
        #expect(revisions == Array(newest - 9...newest + 1))
        backing.close()
        let left = try StoredHistory(data).rows.map(\.revision)
        #expect(left.suffix(11) == Array(newest - 9...newest + 1))
    }

    /// A shell that closes the database removes the log where nobody holds this lock: commits would go to a file without a name.
    @Test func `a store that was opened again while its history is read is locked as one in use`()
        throws
    {
        let history = try backing.openHistory()
        for revision in 1...5 as ClosedRange<Int64> { try commit(revision) }
        try history.snapshot { _ in }
        try #require(try isLocked())
        faults.fail(.sync, of: .log)
        #expect(throws: StateError.self) { try commit(6) }
        try backing.reopen(after: 5) { _ in }
        #expect(try isLocked())
        try history.snapshot { _ in }
        #expect(try isLocked())
        backing.close()
    }

    /// Whether this process holds SQLite's lock of those who use the database.
    private func isLocked() throws -> Bool {
        var status = stat()
        try #require(stat(data + "/stated.db", &status) == 0)
        // https://www.sqlite.org/src/file/src/os.h (SHARED_FIRST)
        let end = ":\(status.st_ino) 1073741826 1073742335"
        let locks = String(decoding: try readFile("/proc/locks"), as: UTF8.self)
        return locks.split(separator: "\n").contains {
            $0.hasSuffix(end) && $0.contains(" \(getpid()) ")
        }
    }
}
