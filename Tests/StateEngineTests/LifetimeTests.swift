import StateEngine
import StateTestSupport
import Testing

/// Values whose writer says when they expire; the clock is the test's.
struct LifetimeTests {
    private let stage: Stage
    /// How far the clock is from where it began, in milliseconds.
    private let passed = Observed<Int64>(0)

    init() throws {
        stage = try Stage()
        let patterns: [Pattern] = ["lease/", "short/"]
        let rules = KeyRules(patterns, memoryPatterns: [], usages: [], texts: NoTexts()) {
            matching in
            var settings = KeyRule.Settings()
            if matching.contains(0) {
                settings.expiry = KeyRule.Setting(value: .seconds(60), rule: 0)
            } else {
                settings.limits[.ttl] = KeyRule.Setting(value: 5_000, rule: 1)
            }
            return KeyRule(settings, quotas: [])
        }
        try stage.install(rules: rules)
        stage.withCore { [passed] in $0.entries.clock = { 5_000_000 + passed.current } }
    }

    private var now: Int64 { 1_000 + passed.current }

    private func advance(by milliseconds: Int64) { passed.update { $0 += milliseconds } }

    @discardableResult
    private func set(
        _ key: String,
        _ value: String,
        _ expiry: Expiry,
        at time: Int64? = nil
    ) throws -> Int64 {
        try stage.transact(at: time ?? now) { (core) throws(StateError) in
            try Array(key.utf8).withBorrowed { (key) throws(StateError) in
                try Array(value.utf8).withBorrowed { (value) throws(StateError) in
                    try core.set(key, to: value, expiry: expiry)
                }
            }
        }
    }

    private func left(_ key: String) -> Int64? {
        stage.withCore { core in core.read(key).flatMap { core.millisecondsLeft(of: $0) } }
    }

    @discardableResult
    private func expire() -> Int {
        stage.withCore { $0.expire(at: $0.entries.clock(), wallTime: now) }
    }

    @Test func `the writer's time wins over that of the rule`() throws {
        try set("lease/a", "1", .ruled)
        #expect(left("lease/a") == 60_000)
        try set("lease/a", "2", .after(500))
        #expect(left("lease/a") == 500)
        try set("lease/a", "3", .at(now + 700))
        #expect(left("lease/a") == 700)
        try set("lease/a", "4", .never)
        #expect(left("lease/a") == nil)
        try set("lease/a", "5", .kept)
        #expect(left("lease/a") == nil)
        try set("lease/b", "1", .kept)
        #expect(left("lease/b") == 60_000)
        #expect(stage.withCore { $0.entries.deadlines.count } == 1 && stage.faults() == [])
    }

    @Test func `a set of the wall clock moves neither a time nor one that is kept`() throws {
        let day: Int64 = 86_400_000
        try set("k", "1", .after(10_000), at: now + day)
        advance(by: 1_000)
        try set("k", "2", .kept, at: now)
        #expect(left("k") == 9_000)
        try set("k", "3", .kept, at: now + 3_650 * day)
        #expect(left("k") == 9_000)
        advance(by: 9_000)
        #expect(expire() == 1 && stage.newest() == [:])
    }

    @Test func `a time that is over is one at which the key is absent`() throws {
        try set("k", "1", .never)
        try set("k", "2", .at(now))
        #expect(stage.newest() == [:])
        #expect(expire() == 1)
        try stage.commit()
        #expect(stage.durable() == [:] && stage.faults() == [])
    }

    @Test func `the farthest time is kept as it is`() throws {
        try set("k", "1", .at(.max))
        try set("l", "1", .after(.max))
        advance(by: 1 << 50)
        #expect(expire() == 0)
        #expect(stage.newest() == ["k": "1", "l": "1"])
        #expect(stage.withCore { $0.read("k")?.expires } == .max)
    }

    @Test func `a rule refuses longer times, and none`() throws {
        try set("short/a", "1", .after(5_000))
        for (expiry, words) in [
            (Expiry.after(5_001), "in 5001ms"), (.never, "never"), (.ruled, "never"),
            (.at(.max), "in 9223372036854774807ms"),
        ] {
            let error = #expect(throws: StateError.self) { try set("short/a", "2", expiry) }
            #expect(error?.code == .limit)
            let sentence = "would expire \(words); the limit is 5s (rule 2, limits.ttl)"
            #expect(error?.message.contains(sentence) == true, "\(error as Any)")
        }
        try set("short/a", "3", .kept)
        #expect(left("short/a") == 5_000)
    }

    @Test func `a million renewals take one place`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let cause = keyspace.withCore { $0.retainCause(Cause(uid: 7, gid: 1, pid: 2, command: "")) }
        var capacity = 0
        for round in 0..<Extent.rounds(1_000) {
            try keyspace.withCore { (core) throws(StateError) in
                for number in 0..<1_000 {
                    try renew(core, cause, .after(60_000 + Int64(round * 1_000 + number)))
                }
                if round == 0 { capacity = core.entries.deadlines.heap.capacity }
            }
            keyspace.publish()
        }
        #expect(keyspace.withCore { $0.entries.deadlines.count } == 1)
        #expect(keyspace.withCore { $0.entries.deadlines.heap.capacity } == capacity)
        keyspace.withCore { $0.release(cause) }
    }

    private func renew(
        _ core: KeyspaceCore,
        _ cause: InternedCause,
        _ expiry: Expiry
    ) throws(StateError) {
        var receipt = core.makeReceipt()
        core.begin(cause, at: 1_000)
        try Array("k".utf8).withBorrowed { (key) throws(StateError) in
            try core.set(key, to: key, expiry: expiry, isRenewal: true)
        }
        core.finish(&receipt)
    }

    /// What a key has in the model.
    private struct Held: Equatable {
        var value: String
        /// By the clock of the test; nil for never.
        var end: Int64?
    }

    /// Each history begins where the one before has ended, with all keys deleted.
    @Test(arguments: Seed.each(4)) func `short histories are as a dictionary's`(seed: UInt64) throws
    {
        var random = SplitMix(seed: seed)
        for history in 0..<250 {
            var model: [String: Held] = [:]
            for step in 0..<Int.random(in: 4...24, using: &random) {
                try takeStep(&model, "\(history).\(step)", &random)
                model = model.filter { $0.value.end.map { $0 > passed.current } ?? true }
                try #require(stage.newest() == model.mapValues(\.value), "\(history).\(step)")
                for (key, held) in model {
                    try #require(left(key) == held.end.map { $0 - passed.current }, "\(key)")
                }
            }
            try #require(stage.faults() == [], "history \(history)")
            for key in model.keys { try stage.delete(key) }
            expire()
            if stage.withCore({ $0.pending.byteCount > 0 }) { try stage.commit() }
        }
    }

    private func takeStep(
        _ model: inout [String: Held],
        _ value: String,
        _ random: inout SplitMix
    ) throws {
        let key = ["a", "b", "lease/c"][Int.random(in: 0..<3, using: &random)]
        let rule: Int64? = key == "lease/c" ? 60_000 : nil
        let time = Int64.random(in: 1...90_000, using: &random)
        func after(_ time: Int64?) -> Int64? { time.map { passed.current + $0 } }
        switch Int.random(in: 0..<9, using: &random) {
        case 0:
            try set(key, value, .ruled)
            model[key] = Held(value: value, end: after(rule))
        case 1:
            try set(key, value, .after(time))
            model[key] = Held(value: value, end: after(time))
        case 2:
            try set(key, value, .at(now + time))
            model[key] = Held(value: value, end: after(time))
        case 3:
            try set(key, value, .never)
            model[key] = Held(value: value, end: nil)
        case 4:
            try set(key, value, .kept)
            model[key] = Held(value: value, end: model[key].map(\.end) ?? after(rule))
        case 5:
            try stage.delete(key)
            model[key] = nil
        case 6: expire()
        case 7 where stage.withCore({ $0.pending.byteCount > 0 }): try stage.commit()
        default: advance(by: Int64.random(in: 0...40_000, using: &random))
        }
    }
}
