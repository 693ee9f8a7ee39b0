import StateEngine
import StateTestSupport
import Testing

/// Entries that expire; the clock is the test's.
struct ExpiryTests {
    private let stage: Stage

    init() throws {
        stage = try Stage()
        let pattern: Pattern = "lease/"
        let rules = KeyRules([pattern], memoryPatterns: [], usages: [], texts: NoTexts()) { _ in
            var settings = KeyRule.Settings()
            settings.expiry = KeyRule.Setting(value: .seconds(60), rule: 0)
            return KeyRule(settings, quotas: [])
        }
        try stage.install(rules: rules)
    }

    private func set(_ key: String, _ value: String, _ expiry: Expiry) throws {
        try stage.transact { (core) throws(StateError) in
            try core.set(key, value, expiry: expiry)
        }
    }

    /// Lets so many milliseconds pass for the deadlines.
    private func expire(after milliseconds: Int64) -> Int {
        stage.withCore { core in
            core.expire(at: Deadlines.now() + milliseconds, wallTime: 1_000 + milliseconds)
        }
    }

    @Test func `an entry goes when its time has come, and not before`() throws {
        try stage.set("lease/a", "1")
        try stage.set("other", "1")
        #expect(stage.withCore { $0.read("lease/a")?.expires } == 61_000)
        #expect(expire(after: 50_000) == 0)
        #expect(expire(after: 60_000) == 1)
        #expect(stage.newest() == ["other": "1"])
        try stage.commit()
        #expect(stage.backing.kept.last?.value == nil && stage.faults() == [])
        #expect(stage.withCore { $0.entries.deadlines.millisecondsLeft(at: 0) } == nil)
    }

    @Test
    func `setting it again, deleting it and undoing that leave the deadline of what is there`()
        throws
    {
        try stage.set("lease/a", "1")
        try stage.set("lease/b", "1")
        try stage.commit()
        try stage.transact(at: 31_000) { (core) throws(StateError) in try core.set("lease/a", "2") }
        try stage.delete("lease/b")
        #expect(expire(after: 59_000) == 0)
        try stage.publish()
        try stage.fail()
        // Both are as they were, and their time is long over.
        #expect(stage.newest() == ["lease/a": "1", "lease/b": "1"])
        #expect(expire(after: 120_000) == 2)
        #expect(stage.newest() == [:] && stage.faults() == [])
    }

    @Test func `what could not be deleted is tried again, and not at once`() throws {
        try stage.set("lease/a", "1")
        try stage.commit()
        #expect(expire(after: 60_000) == 1)
        try stage.publish()
        try stage.fail()
        #expect(stage.newest() == ["lease/a": "1"])
        let left = stage.withCore { $0.entries.deadlines.millisecondsLeft(at: Deadlines.now()) }
        #expect(left.map { $0 > 0 } == true)
        #expect(expire(after: 120_000) == 1)
    }

    @Test func `an entry that is set again and again has one deadline`() throws {
        for number in 0..<20_000 { try stage.set("lease/a", "\(number)") }
        #expect(stage.withCore { $0.entries.deadlines.count } == 1)
        #expect(stage.faults() == [])
        #expect(expire(after: 59_000) == 0)
        #expect(expire(after: 60_000) == 1)
        #expect(stage.withCore { $0.entries.deadlines.count } == 0)
    }

    @Test func `renewed entries move on when their first time is over, and hide none that is due`()
        throws
    {
        for number in 0..<300 { try stage.set("lease/\(number)", "1") }
        try set("lease/due", "1", .after(61_500))
        let start = Deadlines.now()
        for number in 0..<300 { try set("lease/\(number)", "2", .after(90_000 + Int64(number))) }
        // One is due before all now.
        try set("lease/7", "3", .after(10_000))
        #expect(stage.faults() == [])
        #expect(expire(after: 10_000) == 1)
        // 128 at most are looked at in a turn.
        let turns = (0..<4).map { _ in expire(after: 63_000) }
        #expect(turns.reduce(0, +) == 1 && turns[0] == 0 && stage.faults() == [])
        let left = stage.withCore { $0.entries.deadlines.millisecondsLeft(at: start) }
        #expect(left.map { (90_000...95_000).contains($0) } == true)
        #expect((0..<20).map { _ in expire(after: 100_000) }.reduce(0, +) == 299)
        #expect(stage.newest() == [:] && stage.faults() == [])
    }

    @Test func `deadlines come and go with the versions that they are of`() throws {
        var random = SplitMix(seed: Seed.base)
        for round in 0..<400 {
            let key = "lease/\(Int.random(in: 0..<40, using: &random))"
            switch Int.random(in: 0..<10, using: &random) {
            case 0: try stage.delete(key)
            case 1: _ = expire(after: 60_000 + Int64(round))
            case 2:
                _ = try? stage.transact { (core) throws(StateError) in
                    try core.set(key, "1")
                    try core.delete(key)
                    throw StateError(.err, "rolled back")
                }
            case 3 where stage.withCore({ $0.pending.byteCount > 0 }):
                try stage.publish()
                if Bool.random(using: &random) { try stage.succeed() } else { try stage.fail() }
            default: try stage.set(key, "\(round)")
            }
            try #require(stage.faults() == [], "round \(round)")
        }
    }

    @Test func `a wall time is not late by the age of the turn that sets it`() throws {
        stage.withCore {
            $0.entries.clock = { 5_000 }
            $0.entries.wallClock = { 1_040 }
        }
        // The turn began at 1,000.
        try stage.transact(at: 1_000) { (core) throws(StateError) in
            try core.set("at", "1", expiry: .at(1_100))
            try core.set("after", "1", expiry: .after(100))
        }
        let left = { [stage] (key: String) in
            stage.withCore { core in core.read(key).flatMap { core.millisecondsLeft(of: $0) } }
        }
        #expect(left("at") == 60)
        #expect(left("after") == 100)
    }

    /// From here on the clock that deadlines run on is so much later.
    private func advance(by milliseconds: Int64) {
        stage.withCore { $0.entries.clock = { Deadlines.now() + milliseconds } }
    }

    @Test func `an entry whose time is over is absent before its delete is committed`() throws {
        try stage.set("lease/a", "1")
        try stage.set("other", "1")
        try stage.commit()
        advance(by: 59_000)
        #expect(stage.newest() == ["lease/a": "1", "other": "1"])
        advance(by: 60_000)
        #expect(stage.newest() == ["other": "1"])
        #expect(stage.withCore { $0.read("lease/a") == nil && $0.read("other") != nil })
        #expect(stage.keyspace.entry(for: "lease/a") == nil)
        #expect(stage.keyspace.entries(.everything, after: nil, limit: 9).map(\.key) == ["other"])
        try stage.withCore { (core) throws(StateError) in
            try core.check(.isAbsent, "lease/a")
            try core.check(.revision(0), "lease/a")
        }
        #expect(throws: StateError.self) {
            try stage.withCore { (core) throws(StateError) in
                try core.check(.isPresent, "lease/a")
            }
        }
        // Its delete is one commit, and who reads waits for that.
        #expect(expire(after: 60_000) == 1)
        #expect(stage.observed(reading: "lease/a") > 0)
        try stage.commit()
        #expect(stage.durable() == ["other": "1"] && stage.faults() == [])
    }

    @Test func `an entry whose time is over is absent for as long as storage refuses`() throws {
        try stage.set("lease/a", "1")
        try stage.commit()
        advance(by: 60_000)
        for _ in 0..<3 {
            #expect(expire(after: 180_000) == 1)
            try stage.publish()
            try stage.fail()
            #expect(stage.withCore { $0.read("lease/a") == nil })
            #expect(stage.newest() == [:])
        }
    }

    @Test func `a key whose time is over is set as a new entry`() throws {
        try stage.set("lease/a", "1")
        try stage.set("lease/a", "2")
        try stage.commit()
        advance(by: 60_000)
        let revision = try stage.set("lease/a", "3")
        let record = try #require(stage.withCore { $0.read("lease/a") })
        #expect(record.created == revision && record.version == 1)
        #expect(stage.withCore { $0.entries.deadlines.count } == 1)
        // Its deadline is that of its own.
        #expect(expire(after: 60_000) == 0)
        #expect(expire(after: 120_000) == 1)
        #expect(stage.faults() == [])
    }

    @Test func `of many that are due at once each turn deletes a bounded number`() throws {
        for number in 0..<160 { try stage.set("lease/\(number)", "1") }
        try stage.commit()
        advance(by: 60_000)
        #expect(stage.newest() == [:])
        for _ in 0..<5 { #expect(expire(after: 60_000) == 32) }
        #expect(expire(after: 60_000) == 0)
    }
}
