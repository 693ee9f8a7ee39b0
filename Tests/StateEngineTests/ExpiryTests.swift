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
        try stage.exchange(rules: rules)
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
        #expect(stage.withCore { $0.deadlines.millisecondsLeft(at: 0) } == nil)
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
        let left = stage.withCore { $0.deadlines.millisecondsLeft(at: Deadlines.now()) }
        #expect(left.map { $0 > 0 } == true)
        #expect(expire(after: 120_000) == 1)
    }

    @Test func `an entry that is set again and again keeps few deadlines`() throws {
        for number in 0..<20_000 { try stage.set("lease/a", "\(number)") }
        _ = expire(after: 1)
        #expect(stage.withCore { $0.deadlines.count } < 2_000)
        #expect(expire(after: 60_000) == 1)
    }
}
