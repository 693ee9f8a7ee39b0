import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// `history` in rules: superseded versions go earlier than the retention says, and no read takes what
/// is left for all that was.
struct RuledHistoryTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func model(_ seed: UInt64) throws -> RuledModel {
        try RuledModel(seed: seed) { store.backing { $0.stretchRowCount = 16 } }
    }

    @Test(arguments: Seed.each(Extent.named("STATED_COMPACTION_RUNS", short: 6)))
    func `whatever goes, each state and each change is right or refused`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let model = try model(seed)
        for _ in 0..<8 {
            for _ in 0..<Int.random(in: 1...60, using: &random) {
                try model.commit()
                if random.chance(10) { model.clock.update { $0 += 600_000 } }
            }
            #expect(try model.missing() == [])
            if random.chance(70) {
                let isRetained = random.chance(60)
                let compacted = model.keyspace.withCore { $0.revisions.compacted }
                let revision = Int64.random(in: compacted...model.keyspace.revision, using: &random)
                try model.keyspace.compact(to: isRetained ? nil : revision)
            }
            #expect(try model.faults() == [])
            if random.chance(40) { try model.restart() }
            #expect(try model.faults() == [])
            #expect(try store.check().findings == [])
        }
        let faults = model.keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
        #expect(faults == [])
    }

    @Test(arguments: Seed.each(4))
    func `rules that come and go with reloads and restarts lose nothing that is live`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        let model = try model(seed)
        for _ in 0..<12 {
            let kept = RuledModel.kept.filter { _ in random.chance(60) }
            if random.chance(50) { try model.restart(kept) } else { try model.exchange(kept) }
            for _ in 0..<Int.random(in: 1...40, using: &random) { try model.commit() }
            if random.chance(70) { try model.keyspace.compact(to: nil) }
            if random.chance(30) { try model.keyspace.compact(to: model.keyspace.revision - 10) }
            #expect(try model.faults() == [])
            #expect(try store.check().findings == [])
        }
    }

    @Test func `what is left is what the rules keep, and all of the keys without one`() throws {
        let model = try model(1)
        for _ in 0..<600 { try model.commit() }
        model.clock.update { $0 += 3_500_000 }
        for _ in 0..<50 { try model.commit() }
        model.clock.update { $0 += 200_000 }
        try model.commit()
        try model.keyspace.compact(to: nil)
        #expect(try model.missing() == [])
        let rows = try model.rows()
        for (key, revisions) in rows where key.hasPrefix("none/") { #expect(revisions.count == 1) }
        for (key, revisions) in rows where key.hasPrefix("two/") && model.state[key] != nil {
            #expect(revisions.count <= 3)
        }
        let free = model.changes.filter { $0.key.hasPrefix("free/") }
        #expect(
            rows.filter { $0.key.hasPrefix("free/") }.values.reduce(0) { $0 + $1.count }
                == free.count
        )
        // What was superseded an hour ago is gone.
        let old = model.changes.filter { $0.time == 1_000_000 && $0.key.hasPrefix("aged/") }
        for key in Set(old.map(\.key)) {
            let last = try #require(old.last { $0.key == key })
            let count = try #require(rows[key]).filter { $0 < last.revision }.count
            #expect(count == 0, "\(key)")
        }
    }

    @Test func `a rule that is read at a start holds for the history that is there`() throws {
        let first = try RuledModel(seed: 3) { store.backing() }
        try first.restart([:])
        for _ in 0..<400 { try first.commit() }
        try first.keyspace.compact(to: nil)
        #expect(try first.rows().values.reduce(0) { $0 + $1.count } == first.changes.count)
        try first.restart()
        try first.keyspace.compact(to: nil)
        let rows = try first.rows()
        for (key, revisions) in rows where key.hasPrefix("none/") { #expect(revisions.count == 1) }
        #expect(try first.faults() == [])
        #expect(try first.missing() == [])
    }

    /// It waits in a stretch of live rows, while the row that superseded it was swept with others.
    @Test func `a dead row whose successor is gone is found by a start, and goes`() throws {
        let backing = store.backing { $0.stretchRowCount = 16 }
        let kept = ["none/": KeyRetention(changeCount: 0)]
        var keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        try keyspace.install(rules: RuledModel.rules(kept))
        for number in 0..<15 { try keyspace.apply([.set(Key("free/\(number)"), [1])]) }
        for number in 0..<17 { try keyspace.apply([.set("none/a", [UInt8(number)])]) }
        // On the commit thread, which then sees what there is.
        keyspace.submit([.set("free/last", [1])]) { _ in }
        #expect(eventually { backing.historyStatus.rowCount == 18 })
        keyspace.close()
        keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.install(rules: RuledModel.rules(kept))
        try keyspace.compact(to: nil)
        let rows = try Stranger(store.database).run("SELECT key FROM history WHERE key = 'none/a'")
        #expect(rows.count == 1)
        #expect(try store.check().findings == [])
    }

    @Test func `a start reads on behind a gap of many rows that are gone`() throws {
        var keyspace = try LocalKeyspace(backing: store.backing())
        defer { keyspace.close() }
        let kept = ["none/": KeyRetention(changeCount: 0)]
        try keyspace.install(rules: RuledModel.rules(kept))
        try keyspace.apply([.set(Key("free"), [1])])
        for number in 0..<5_000 {
            keyspace.submit([.set("none/a", [UInt8(number & 255)])]) { _ in }
        }
        try keyspace.apply([.set(Key("free"), [2])])
        try keyspace.compact(to: nil)
        keyspace.close()
        keyspace = try LocalKeyspace(backing: store.backing())
        try keyspace.install(rules: RuledModel.rules(kept))
        try keyspace.compact(to: nil)
        let numbers = try Stranger(store.database).run("SELECT number FROM history")
        #expect(numbers.count == 3)
        #expect(try store.check().findings == [])
    }

    @Test func `a damaged store is salvaged with what its rules have left`() throws {
        let model = try model(5)
        for _ in 0..<400 { try model.commit() }
        try model.keyspace.compact(to: nil)
        let rows = try model.rows()
        model.keyspace.close()
        let target = try TemporaryStore()
        let (lines, summary) = try store.salvage(to: target)
        #expect(lines == [] && summary.isWhole)
        // Pages may still have rows that were removed; they come back as history.
        #expect(summary.rowCount >= rows.values.reduce(0) { Int64($1.count) + $0 })
        #expect(summary.entryCount == model.state.count)
        #expect(try target.check().findings == [])
    }

    @Test func `a crash in the middle of a sweep loses nothing that is live`() throws {
        let model = try model(7)
        for _ in 0..<Extent.rounds(6) {
            for _ in 0..<60 { try model.commit() }
            try model.keyspace.compact(to: nil)
            for _ in 0..<10 { try model.commit() }
            let copy = try TemporaryStore()
            try store.copy(to: copy)
            let crashed = try LocalKeyspace(backing: copy.backing())
            defer { crashed.close() }
            let found = crashed.entries(.everything, after: nil, limit: .max)
            #expect(
                Dictionary(uniqueKeysWithValues: found.map { ($0.key.description, $0.entry.value) })
                    == model.state
            )
            try crashed.install(rules: RuledModel.rules(RuledModel.kept))
            try crashed.compact(to: nil)
            #expect(crashed.entries(.everything, after: nil, limit: .max).count == found.count)
            #expect(try copy.check().findings == [])
        }
    }

    /// A restart in between finds dead rows whose successors are gone.
    @Test(arguments: [false, true])
    func `under constant load the rows of such keys stay bounded without being asked`(
        restarts: Bool
    ) throws {
        var backing = store.backing()
        var keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let kept = ["none/": KeyRetention(changeCount: 0), "ten/": KeyRetention(changeCount: 10)]
        try keyspace.install(rules: RuledModel.rules(kept))
        let keys = try (0..<1_000).map { try Key($0 % 2 == 0 ? "none/\($0)" : "ten/\($0)") }
        let waiting = Observed(0)
        let count = Extent.named("STATED_COMPACTION_WRITES", short: 300_000)
        for number in 0..<count {
            if number % 800 == 0 { try #require(waiting.wait(until: { $0 < 800 })) }
            waiting.update { $0 += 1 }
            keyspace.submit([.set(keys[number % 1_000], [1])]) { _ in waiting.update { $0 -= 1 } }
        }
        try #require(waiting.wait(until: { $0 == 0 }))
        // Live are 1,000 rows, kept 5,000.
        let used = backing
        #expect(eventually { used.historyStatus.rowCount < 60_000 })
        if restarts {
            keyspace.close()
            backing = store.backing()
            keyspace = try LocalKeyspace(backing: backing)
            try keyspace.install(rules: RuledModel.rules(kept))
        }
        try keyspace.compact(to: nil)
        #expect(backing.historyStatus.rowCount == 6_000)
    }
}
