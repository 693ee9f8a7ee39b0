import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What a process has deferred when it ends without closing the store.
final class DeferralLogTests {
    private let store: TemporaryStore
    private var findings: [String] = []
    private var log: String { store.database + "-late" }

    init() throws { store = try TemporaryStore() }

    private func change(_ revision: Int64, _ size: Int = 8) -> BuiltBatch.Change {
        BuiltBatch.Change(
            revision: revision,
            key: Array("late/\(revision % 3)".utf8),
            value: revision % 5 == 0 ? nil : [UInt8](repeating: UInt8(revision % 251), count: size),
            created: revision,
            owner: 7,
            time: 1_700_000_000_000 + revision,
            cause: Array("1000:1000:4242:editor:".utf8),
            expires: revision % 4 == 0 ? 1_900_000_000_000 : nil
        )
    }

    private func commit(_ revisions: ClosedRange<Int64>, to backing: SQLiteBacking) throws {
        try BuiltBatch(revisions.map { change($0) }).commit(to: backing)
        backing.didStore(through: revisions.upperBound)
    }

    /// Defers one batch.
    private func keep(_ revisions: ClosedRange<Int64>, _ size: Int = 8, in backing: SQLiteBacking) {
        #expect(BuiltBatch(revisions.map { change($0, size) }).keep(in: backing))
    }

    /// What the next process finds, which ends without closing the store as well.
    private func next() throws -> (revisions: [Int64], hasAll: Bool, contents: Contents) {
        let backing = store.backing()
        let sink = Sink()
        backing.reports.finding = { sink.add($0) }
        let contents = try Contents(of: backing)
        findings = sink.texts
        return (contents.changes.map(\.plain.revision), backing.hasAllDeferred, contents)
    }

    /// Only the load adds to it, on the caller's thread.
    private final class Sink: @unchecked Sendable {
        private(set) var texts: [String] = []
        func add(_ text: String) { texts.append(text) }
    }

    /// A store of a process that has ended with revisions 1 to 3 stored and 4 to 9 deferred.
    private func leaveDeferred() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        try commit(1...3, to: backing)
        for batch in [4...5, 6...6, 7...9] as [ClosedRange<Int64>] { keep(batch, in: backing) }
    }

    @Test func `durable before told: the next load stores what was deferred, once`() throws {
        try leaveDeferred()
        for _ in 1...3 {
            let found = try next()
            #expect(found.revisions == Array(1...9))
            let changes = found.contents.changes
            for (revision, found) in zip(1...9 as ClosedRange<Int64>, changes) {
                #expect(found.plain == change(revision))
            }
        }
        let last = store.backing()
        _ = try last.load { _ in }
        last.close()
        #expect(!names(in: store.directory).contains("stated.db-late"))
    }

    @Test func `a process that deferred nothing has lost nothing, if it was prepared`() throws {
        for isPrepared in [true, false, true] {
            let backing = store.backing()
            _ = try backing.load { _ in }
            if isPrepared { backing.prepareToDefer() }
            // The owner's lock goes with the object.
            _ = consume backing
            #expect(try next().hasAll == isPrepared)
            unlink(log)
        }
    }

    @Test(arguments: Seed.each(16))
    func `atomic: of a damaged log, whole batches up to the damage are stored`(seed: UInt64) throws
    {
        try leaveDeferred()
        var bytes = try readFile(log)
        var random = SplitMix(seed: seed)
        let place = Int.random(in: 0..<bytes.count, using: &random)
        let isCut = random.chance(50)
        if isCut {
            bytes.removeSubrange(place...)
        } else {
            bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        }
        try write(bytes, to: log)
        let found = try next()
        let prefixes = [3, 5, 6, 9].map { Array(1...Int64($0)) }
        #expect(prefixes.contains(found.revisions), "STATED_TEST_SEED=\(seed), byte \(place)")
        if place < 92 { #expect(found.revisions.count == 3 && !found.hasAll) }
        #expect(try next().revisions == found.revisions)
    }

    @Test func `what an earlier round has left is not taken for a part of this one`() throws {
        for size in [8, 40] {
            let backing = store.backing()
            let revision = try backing.load { _ in }.revision
            for offset in 1...6 as ClosedRange<Int64> {
                keep(revision + offset...revision + offset, in: backing)
            }
            try commit(revision + 1...revision + 6, to: backing)
            keep(revision + 7...revision + 7, size, in: backing)
            _ = consume backing
            let found = try next()
            #expect(found.revisions == Array(1...(revision + 7)) && found.hasAll)
        }
    }

    @Test func `a log of another generation, or of a later moment than the store, is ignored`()
        throws
    {
        let backing = store.backing()
        _ = try backing.load { _ in }
        try commit(1...2, to: backing)
        let earlier = try TemporaryStore()
        try store.copy(to: earlier)
        try commit(3...3, to: backing)
        keep(4...4, in: backing)
        _ = consume backing
        let late = try readFile(log)
        // The same files with the contents of before.
        for name in names(in: store.log) where !names(in: earlier.log).contains(name) {
            unlink(store.log + "/" + name)
        }
        try earlier.copy(to: store)
        try write(late, to: log)
        unlink(store.database + "-shm")
        let found = try next()
        #expect(found.revisions == [1, 2] && !found.hasAll)
        #expect(findings.count == 1 && findings[0].contains("does not continue"), "\(findings)")
        try write(late, to: log)
        let later = try next()
        #expect(later.revisions == [1, 2] && !later.hasAll && findings == [])
    }

    @Test func `never silent: without a log, nothing counts as kept until the store has all`()
        throws
    {
        let backing = store.backing()
        _ = try backing.load { _ in }
        try #require(mkdir(log, 0o700) == 0)
        #expect(!BuiltBatch([change(1)]).keep(in: backing))
        rmdir(log)
        #expect(!BuiltBatch([change(2)]).keep(in: backing))
        try commit(1...1, to: backing)
        #expect(!BuiltBatch([change(3)]).keep(in: backing))
        try commit(2...3, to: backing)
        keep(4...4, in: backing)
        _ = consume backing
        let found = try next()
        #expect(found.revisions == [1, 2, 3, 4] && found.hasAll)
    }

    @Test(
        .enabled(if: SmallFileSystem.isPossible, "only root may mount a file system"),
        arguments: [false, true]
    )
    func `never silent: a log that lacks a batch says so, and has the rest`(isClosed: Bool) throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallFileSystem(at: directory.path(of: "small"), kibibytes: 4_096)
        defer { withExtendedLifetime(disk) {} }
        let small = try TemporaryStore(in: disk.path)
        for isStored in [false, true] {
            let backing = small.backing()
            let revision = try backing.load { _ in }.revision
            backing.prepareToDefer()
            keep(revision + 1...revision + 1, in: backing)
            #expect(!BuiltBatch([change(revision + 2, 5 << 20)]).keep(in: backing))
            #expect(!BuiltBatch([change(revision + 3)]).keep(in: backing))
            if isStored {
                try commit(revision + 1...revision + 3, to: backing)
                keep(revision + 4...revision + 4, in: backing)
            }
            if isClosed {
                backing.close()
                #expect(backing.leftDeferred == (isStored ? .all : .part))
            }
            _ = consume backing
            let found = small.backing()
            let count = try Contents(of: found).changes.count
            #expect(found.hasAllDeferred == isStored && count == (isStored ? 5 : 1))
        }
    }

    @Test func `durable before told: what was kept while the store was written is there`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        for revision in 1...6 as ClosedRange<Int64> { keep(revision...revision, in: backing) }
        try commit(1...3, to: backing)
        keep(7...7, in: backing)
        _ = consume backing
        let found = try next()
        #expect(found.revisions == Array(1...7) && found.hasAll)
    }

    @Test(arguments: Seed.each(4))
    func `bounded: a log that is never empty is moved to the front, and loses nothing`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let backing = store.backing()
        _ = try backing.load { _ in }
        var (kept, stored): (Int64, Int64) = (0, 0)
        var longest = 0
        for _ in 0..<Int.random(in: 60..<80, using: &random) {
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                kept += 1
                keep(kept...kept, Int.random(in: 1...100_000, using: &random), in: backing)
            }
            let next = Int64.random(in: max(stored, kept - 8)..<kept, using: &random)
            guard next > stored else { continue }
            try BuiltBatch((stored + 1...next).map { change($0) }).commit(to: backing)
            backing.didStore(through: next)
            stored = next
            longest = max(longest, try readFile(log).count)
        }
        // Without that, it would have some 10 MB.
        #expect(longest < 4 << 20, "STATED_TEST_SEED=\(seed): \(longest) bytes")
        _ = consume backing
        let found = try next()
        #expect(found.revisions == Array(1...kept) && found.hasAll, "STATED_TEST_SEED=\(seed)")
    }
}
