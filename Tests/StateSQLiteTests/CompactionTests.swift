import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What is superseded goes from the history, and from the compacted revision on all of it is there.
struct CompactionTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func openModel(seed: UInt64, keyCount: Int) throws -> CompactedModel {
        try CompactedModel(seed: seed, keyCount: keyCount) { store.backing() }
    }

    @Test(arguments: Seed.each(Extent.named("STATED_COMPACTION_RUNS", short: 4)))
    func `from the compacted revision on every state and every change is right, below it none is`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let keyCount = Int.random(in: 3...60, using: &random)
        let model = try openModel(seed: seed, keyCount: keyCount)
        for _ in 0..<8 {
            for _ in 0..<Int.random(in: 1...60, using: &random) { try model.commit() }
            if random.chance(80) { try model.compact() }
            #expect(try model.faults() == [])
            if random.chance(40) {
                try model.restart()
                #expect(try model.faults() == [])
            }
            #expect(try store.check().findings == [])
        }
        let faults = model.keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
        #expect(faults == [])
    }

    @Test func `what is left up to the compacted revision are the live entries`() throws {
        let model = try openModel(seed: 1, keyCount: 30)
        for _ in 0..<300 { try model.commit() }
        try model.compact(to: model.keyspace.revision)
        let rows = try Stranger(store.database).run("SELECT count(*), max(number) FROM history")
        // The newest row of all stays, whatever it is, and what it superseded.
        let count = try #require(rows[0][0].flatMap { Int($0) })
        #expect((model.state.count...model.state.count + 2).contains(count))
        #expect(try store.check().summary.entryCount == model.state.count)
    }

    @Test func `no number and no revision is given twice after all is deleted and compacted`()
        throws
    {
        var numbers: [String] = []
        var last: Int64 = 0
        for _ in 0..<5 {
            let keyspace = try LocalKeyspace(backing: store.backing())
            #expect(keyspace.revision >= last)
            try keyspace.apply([.set("a", [1]), .set("b", [2])])
            let revision = try keyspace.apply([.delete("a"), .delete("b")])
            #expect(revision > last)
            last = revision
            #expect(try keyspace.compact(to: revision).compacted == revision)
            let rows = try Stranger(store.database).run("SELECT number FROM history")
            // The newest, and what it superseded.
            #expect(rows.count == 2)
            numbers += rows.compactMap { $0[0] }
            keyspace.close()
            #expect(try store.check().findings == [])
        }
        #expect(Set(numbers).count == 10)
    }

    @Test func `keys that are set and deleted for ever cost no memory and no room`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        defer { keyspace.close() }
        for round in 0..<20 {
            let keys = try (0..<500).map { try Key("session/\(round)/\($0)") }
            try keyspace.apply(keys.map { .set($0, [1]) })
            try keyspace.apply(keys.map { .delete($0) })
        }
        #expect(keyspace.withCore { $0.rememberedDeleteCount } == 10_000)
        try keyspace.compact(to: keyspace.revision)
        #expect(keyspace.withCore { $0.rememberedDeleteCount } <= 1)
        let rows = try Stranger(store.database).run("SELECT count(*) FROM history")
        #expect(rows == [["2"]])
    }

    /// Runs `body` while another thread does `work` again and again.
    private func whileAnother(
        does work: @escaping @Sendable (inout SplitMix) -> Void,
        body: () throws -> Void
    ) rethrows {
        let writer = WorkerThread(name: "writer")
        let isOver = Observed(false)
        writer.start {
            var random = SplitMix(seed: Seed.base)
            while !isOver.current { work(&random) }
        }
        defer {
            isOver.update { $0 = true }
            writer.join()
        }
        try body()
    }

    @Test func `a delete that a write supersedes while it is taken away`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        try whileAnother { random in
            guard let key = try? Key("k\(Int.random(in: 0..<40, using: &random))") else { return }
            _ = try? keyspace.apply([random.chance(50) ? .delete(key) : .set(key, [1])])
        } body: {
            for _ in 0..<Extent.rounds(200) { try keyspace.compact(to: keyspace.revision) }
        }
        let faults = keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
        #expect(faults == [])
        #expect(try store.check().findings == [])
        let entries = keyspace.entries(.everything, after: nil, limit: .max).map(\.key.description)
        keyspace.close()
        let again = try LocalKeyspace(backing: store.backing())
        defer { again.close() }
        #expect(
            again.entries(.everything, after: nil, limit: .max).map(\.key.description) == entries
        )
    }

    @Test func `a store is checked beside its owner while that compacts`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        try whileAnother { random in
            let mutations = (0..<200).compactMap { _ -> Mutation? in
                let number = Int.random(in: 0..<5_000, using: &random)
                guard let key = try? Key("k\(number)") else { return nil }
                return number % 5 < 2 ? .delete(key) : .set(key, random.bytes(200))
            }
            _ = try? keyspace.apply(mutations)
            _ = try? keyspace.compact(to: keyspace.revision)
        } body: {
            for _ in 0..<Extent.rounds(20) {
                let findings = try store.check().findings
                #expect(findings == [])
            }
        }
        keyspace.close()
        #expect(try store.check().findings == [])
    }

    @Test func `a revision above the current one is refused, one below the compacted one is done`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: store.backing())
        defer { keyspace.close() }
        for number in 0..<10 { try keyspace.apply([.set("k", [UInt8(number)])]) }
        let error = try #require(throws: StateError.self) { try keyspace.compact(to: 11) }
        #expect(error.message.contains("revision 11 is above the current revision 10"))
        #expect(try keyspace.compact(to: 7).compacted == 7)
        #expect(try keyspace.compact(to: 3).compacted == 7)
        #expect(try keyspace.compact().compacted == 7)
        let memory = try LocalKeyspace(backing: MemoryBacking())
        defer { memory.close() }
        #expect(throws: StateError.self) { try memory.compact() }
    }

    @Test func `who asks for more is not answered with what another asked for`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        defer { keyspace.close() }
        for round in 1...Int64(Extent.rounds(20)) {
            for number in 0..<10 as Range<UInt8> { try keyspace.apply([.set("k", [number])]) }
            let replies = Observed<[Int64]>([])
            try keyspace.withCore { (core) throws(StateError) in
                for revision in [round * 10 - 2, round * 10 - 8] {
                    try keyspace.compact(to: revision, shrinks: false, in: core) { result in
                        replies.update { $0.append((try? result.get().compacted) ?? -1) }
                    }
                }
            }
            try #require(replies.wait(until: { $0.count == 2 }))
            #expect(replies.current == [round * 10 - 2, round * 10 - 2])
        }
    }

    @Test func `shrinking gives the room back, and numbers, checks and the view stay as they are`()
        throws
    {
        let model = try openModel(seed: 5, keyCount: 50)
        for _ in 0..<2_000 { try model.commit() }
        let before = try readFile(store.database).count
        let numbers = "SELECT number, revision, ordinal FROM history"
        try model.compact(to: model.keyspace.revision - 5)
        let rows = try Stranger(store.database).run(numbers)
        var status = stat()
        stat(store.database, &status)
        let inode = status.st_ino
        let reply = try model.keyspace.compact(shrinks: true)
        #expect(reply.freedByteCount ?? 0 > before / 2)
        #expect(try readFile(store.database).count < before / 2)
        #expect(try Stranger(store.database).run(numbers) == rows)
        stat(store.database, &status)
        #expect(status.st_ino == inode)
        #expect(try model.faults() == [])
        for _ in 0..<100 { try model.commit() }
        try model.restart()
        #expect(try model.faults() == [])
        let last = try Stranger(store.database).run(
            "SELECT name FROM sqlite_schema ORDER BY rowid DESC LIMIT 1"
        )
        #expect(last == [["meta"]])
    }

    /// Compacts a piece as small as it can be.
    ///
    /// - Returns: Whether nothing is left to do.
    private func compactPiece(of backing: SQLiteBacking) throws -> Bool {
        var goesOn = true
        return try backing.compact {
            defer { goesOn = false }
            return goesOn
        }.isDone
    }

    /// What a delete superseded goes before it, or a start would find it alive.
    @Test func `killed between any two transactions of a sweep, the live entries are the same`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: store.backing())
        for number in 0..<12 { try keyspace.apply([.set(Key("k\(number)"), [1])]) }
        try keyspace.compact(to: keyspace.revision)
        for number in 0..<6 { try keyspace.apply([.delete(Key("k\(number)"))]) }
        for number in 4..<8 { try keyspace.apply([.set(Key("k\(number)"), [2])]) }
        try keyspace.apply([.delete("k7"), .set("last", [3])])
        let revision = keyspace.revision
        keyspace.close()
        let backing = store.backing()
        let expected = try live(Contents(of: backing))
        try #require(expected.count == 8)
        backing.raiseCompaction(to: revision)
        var (stepCount, isDone) = (0, false)
        while !isDone {
            isDone = try compactPiece(of: backing)
            let killed = try TemporaryStore()
            try store.copy(to: killed)
            #expect(try live(killed.contents()) == expected, "after step \(stepCount)")
            stepCount += 1
        }
        backing.close()
        #expect(stepCount > 5)
    }

    /// Compacts up to a revision in pieces as small as they can be, and looks at the store now and then.
    ///
    /// - Returns: How many pieces that took.
    private func compactInPieces(_ revision: Int64) throws -> Int {
        let backing = store.backing()
        let expected = try live(Contents(of: backing))
        defer { backing.close() }
        backing.raiseCompaction(to: revision)
        var (count, isDone) = (0, false)
        while !isDone {
            isDone = try compactPiece(of: backing)
            count += 1
            try #require(count < 500)
            guard count % 8 == 0 else { continue }
            let killed = try TemporaryStore()
            try store.copy(to: killed)
            #expect(try live(killed.contents()) == expected, "after \(count) pieces")
        }
        return count
    }

    private func rowCount() throws -> Int {
        try Stranger(store.database).run("SELECT number FROM history").count
    }

    @Test func `a stretch goes in pieces of 256 rows, and what lives in it stays`() throws {
        let keys = try (0..<3_000).map { try Key("k\($0)") }
        let keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.apply(keys.map { .set($0, [1]) })
        try keyspace.compact(to: keyspace.revision)
        // Every tenth row stays, in all pieces.
        let others = keys.indices.filter { $0 % 10 > 0 }.map { keys[$0] }
        try keyspace.apply(others.map { .set($0, [2]) })
        let revision = try keyspace.apply([.set("last", [3])])
        keyspace.close()
        let count = try compactInPieces(revision)
        #expect(count >= 3_000 / 256)
        #expect(try rowCount() == 3_001)
        #expect(try store.check().findings == [])
    }

    @Test func `rows that are far apart take no step for each number between them`() throws {
        let keys = try (0..<10).map { try Key("k\($0)") }
        var keyspace = try LocalKeyspace(backing: store.backing())
        for key in keys { try keyspace.apply([.set(key, [1])]) }
        try keyspace.compact(to: keyspace.revision)
        keyspace.close()
        // As after millions of writes of other keys.
        _ = try Stranger(store.database).run(
            "UPDATE history SET number = number + 1000000000 WHERE number > 5"
        )
        keyspace = try LocalKeyspace(backing: store.backing())
        for key in keys.dropLast() { try keyspace.apply([.set(key, [2])]) }
        let revision = keyspace.revision
        keyspace.close()
        let count = try compactInPieces(revision)
        #expect(count < 50)
        // The newest row stays, and what it superseded.
        #expect(try rowCount() == 11)
        #expect(try store.check().findings == [])
    }

    /// A tombstone that goes before an older row of its key would make the next start serve that row.
    @Test(arguments: Seed.each(Extent.named("STATED_SWEEP_RUNS", short: 6)))
    func `durable before told: whatever the retention takes, a start finds the same values`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let keyCount = Int.random(in: 50...400, using: &random)
        let stretchRowCount = Int.random(in: 4...64, using: &random)
        let changeCount = random.chance(50) ? 0 : 300
        let model = try CompactedModel(seed: seed, keyCount: keyCount) {
            let backing = store.backing { $0.stretchRowCount = stretchRowCount }
            backing.history.changeCount = changeCount
            return backing
        }
        var rowCounts: [Int64] = []
        for round in 0..<8 {
            for _ in 0..<400 { try model.commit() }
            if random.chance(30) { _ = try model.keyspace.compact() }
            try model.restart { rowCounts.append(try store.check().summary.rowCount) }
            #expect(model.differences() == [], "after round \(round)")
        }
        #expect(rowCounts.max() ?? 0 < 2 * keyCount + changeCount + 1_024 + 800)
    }

    private func live(_ contents: Contents) -> [[UInt8]: [UInt8]] {
        var values: [[UInt8]: [UInt8]] = [:]
        for change in contents.changes { values[change.plain.key] = change.plain.value }
        return values
    }

    @Test func `after a salvage the history goes on to be compacted`() throws {
        let model = try openModel(seed: 9, keyCount: 20)
        for _ in 0..<200 { try model.commit() }
        try model.compact(to: 100)
        let state = model.state
        model.keyspace.close()
        let target = try TemporaryStore()
        _ = try store.salvage(to: target)
        let keyspace = try LocalKeyspace(backing: target.backing())
        defer { keyspace.close() }
        try keyspace.apply([.set("k/0", [1])])
        try keyspace.compact(to: keyspace.revision)
        #expect(keyspace.keyCount == Set(state.keys).union(["k/0"]).count)
        let rows = try Stranger(target.database).run(
            "SELECT number, revision, key, value IS NULL, previous_revision FROM history"
        )
        // And what the newest row superseded, where that was anything.
        let isNew = state["k/0"] == nil
        #expect(rows.count == keyspace.keyCount + (isNew ? 0 : 1), "\(rows)")
        #expect(try target.check().findings == [])
    }
}
