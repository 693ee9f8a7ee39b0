import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// Rules that keep less of the history, in a settled store: segments are written again.
struct SettledRuleTests {
    private let directory: TemporaryDirectory
    private let data: String

    init() throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
        mkdir(data, 0o700)
    }

    private func backing(_ clock: Observed<Int64>) -> SQLiteBacking {
        backing(clock, keeping: 1_000_000)
    }

    private func backing(_ clock: Observed<Int64>, keeping count: Int) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        options.history = .keep(changes: count)
        options.log.segmentByteCount = 16 << 10
        options.log.largeSegmentByteCount = 32 << 10
        options.log.age = { clock.current }
        options.settling.logByteCount = 20_000
        options.settling.sliceByteCount = 8 << 10
        return SQLiteBacking(directory: data, options)
    }

    private func check() throws -> [String] {
        var findings: [String] = []
        _ = try StoreCheck(store: data) { findings.append($0) }.run()
        return findings
    }

    /// Where little is kept, changes have the versions with them that they supersede.
    @Test(arguments: Seed.each(Extent.named("STATED_COMPACTION_RUNS", short: 2)), [1_000_000, 120])
    func `whatever goes, each state and each change is right or refused`(
        seed: UInt64,
        keeping count: Int
    ) throws {
        var random = SplitMix(seed: seed)
        let model = try RuledModel(seed: seed) { backing($0, keeping: count) }
        for round in 0..<8 {
            for _ in 0..<Int.random(in: 1...60, using: &random) {
                try model.commit()
                if random.chance(10) { model.clock.update { $0 += 600_000 } }
            }
            let missing = try model.missing()
            #expect(
                missing == [],
                "\(missing.prefix(9)) compacted \(model.keyspace.withCore { $0.revisions.compacted })"
            )
            if random.chance(70) {
                let isRetained = random.chance(60)
                let compacted = model.keyspace.withCore { $0.revisions.compacted }
                let revision = Int64.random(in: compacted...model.keyspace.revision, using: &random)
                try model.keyspace.compact(to: isRetained ? nil : revision)
            }
            #expect(try model.faults() == [], "STATED_TEST_SEED=\(seed), round \(round)")
            if random.chance(40) {
                try model.restart()
                let findings = try check()
                #expect(findings == [], "\(findings)")
            }
            #expect(try model.faults() == [], "STATED_TEST_SEED=\(seed), round \(round)")
        }
        let faults = model.keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
        #expect(faults == [])
    }

    @Test func `compact leaves what the rules keep, and all of the keys without one`() throws {
        let model = try RuledModel(seed: Seed.base, backing)
        for _ in 0..<600 { try model.commit() }
        try model.keyspace.compact(to: nil)
        model.clock.update { $0 += 3_700_000 }
        for _ in 0..<50 { try model.commit() }
        try model.keyspace.compact(to: nil)
        #expect(try model.missing() == [])
        let rows = try model.rows()
        let byPrefix = Dictionary(grouping: rows) { $0.key.prefix { $0 != "/" } }
        #expect(try #require(byPrefix["none"]).allSatisfy { $0.value.count == 1 })
        #expect(try #require(byPrefix["two"]).allSatisfy { $0.value.count <= 3 })
        #expect(try #require(byPrefix["both"]).allSatisfy { $0.value.count <= 4 })
        let freeCount = model.changes.filter { $0.key.hasPrefix("free/") }.count
        #expect(try #require(byPrefix["free"]).reduce(0) { $0 + $1.value.count } == freeCount)
        let old = model.changes.filter { $0.time == 1_000_000 && $0.key.hasPrefix("aged/") }
        for (key, revisions) in try #require(byPrefix["aged"]) {
            let last = try #require(old.last { $0.key == key })
            #expect(revisions.allSatisfy { $0 >= last.revision }, "\(key)")
        }
        try model.restart()
        #expect(try model.rows() == rows)
        #expect(try model.faults() == [])
    }

    @Test
    func
        `never silent about storage: a store whose segments were written again is whole, also when killed`()
        throws
    {
        let model = try RuledModel(seed: Seed.base, backing)
        for _ in 0..<600 { try model.commit() }
        try model.keyspace.compact(to: nil)
        #expect(try check() == [])
        let killed = directory.path(of: "killed")
        try #require(try runCommand("cp", ["-a", data, killed]).exitCode == 0)
        var lines: [String] = []
        _ = try StoreSalvage(store: killed, target: directory.path(of: "new")) { lines.append($0) }
            .run()
        #expect(lines == [])
        let new = try LocalKeyspace(backing: SettledStage.backing(directory.path(of: "new")))
        defer { new.close() }
        #expect(new.values == model.keyspace.values)
    }

    @Test func `a gap is never silent: what a rule has removed is not read from what carries it`()
        throws
    {
        let backing = backing(Observed(0), keeping: 300)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        try keyspace.install(rules: RuledModel.rules(["none/": KeyRetention(changeCount: 0)]))
        let first = try keyspace.apply([.set("none/k", [1])])
        let second = try keyspace.apply([.set("none/k", [2])])
        for number in 0..<420 { try keyspace.apply([.set(try Key("free/\(number % 9)"), [3])]) }
        let third = try keyspace.apply([.set("none/k", [4])])
        try keyspace.compact(to: nil)
        let history = try #require(try backing.openHistory() as? any SettledReading)
        try history.snapshot { compacted in
            // The segment of the first two is there still.
            try #require(compacted < first)
            var isCarried = false
            _ = try history.forEachCarryingChange(
                after: .end(of: third - 1),
                through: third
            ) { _, carried in
                isCarried = carried?.place.revision == second
                return true
            }
            try #require(isCarried)
            let isThere = try history.withChange(
                at: HistoryPlace(revision: second, ordinal: 0),
                supersededBy: HistoryPlace(revision: third, ordinal: 0)
            ) { _ in }
            #expect(!isThere)
            let error = #expect(throws: StateError.self) {
                try history.requireWhole(Array("none/k".utf8), at: first)
            }
            #expect(error?.code == .compacted)
        }
    }

    @Test
    func
        `never silent about storage: a database from before its segments were written again is refused`()
        throws
    {
        let model = try RuledModel(seed: Seed.base, backing)
        for _ in 0..<300 { try model.commit() }
        try model.keyspace.compact(to: nil)
        let (path, copy) = (data + "/stated.db", directory.path(of: "copy.db"))
        try Stranger(path).run("VACUUM INTO '\(copy)'")
        for _ in 0..<300 { try model.commit() }
        try model.keyspace.compact(to: nil)
        let killed = directory.path(of: "killed")
        try #require(try runCommand("cp", ["-a", data, killed]).exitCode == 0)
        for name in ["/stated.db", "/stated.db-wal", "/stated.db-shm"] { unlink(killed + name) }
        try #require(try runCommand("cp", [copy, killed + "/stated.db"]).exitCode == 0)
        let error = #expect(throws: StateError.self) { try SettledStage.values(in: killed) }
        #expect(error?.code == .corrupt && error?.message.contains("of an earlier time") == true)
    }

    @Test func `under load what rules do not keep goes without being asked`() throws {
        let backing = backing(Observed(0))
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        try keyspace.install(rules: RuledModel.rules(["none/": KeyRetention(changeCount: 0)]))
        let keys = try (0..<20).map { try Key("none/\($0)") }
        for number in 0..<6_000 { try keyspace.apply([.set(keys[number % 20], [1, 2, 3, 4])]) }
        #expect(eventually { backing.status.segments.rewrittenCount > 5 })
        var count = 0
        let history = try backing.openHistory()
        #expect(
            eventually {
                count = 0
                try? history.snapshot { _ in
                    _ = try history.forEachChange(after: .end(of: 0), through: .max) { _ in
                        count += 1
                        return true
                    }
                }
                return count < 4_000
            },
            "\(count)"
        )
    }
}
