import StateEngine
import StateTestSupport
import Testing

/// What the commit thread counts: commits that storage has, once each.
struct CommitMeterTests {
    /// Commits, changes, batches with a time, and failures.
    private func counts(_ keyspace: LocalKeyspace) -> [Int] {
        let meter = keyspace.meter
        return [
            meter.commitCount, meter.changeCount, meter.counts.reduce(0, +), meter.failedCount,
        ]
    }

    private func publish(_ stage: Stage) throws {
        stage.keyspace.publish()
        try stage.settle()
    }

    @Test func `what is deferred counts once it is stored, with the next commit`() throws {
        let stage = try Stage()
        try stage.install(rules: deferringRules("late/", every: .seconds(3_600)))
        for value in ["1", "2"] {
            try stage.set("late/a", value)
            try publish(stage)
        }
        #expect(stage.keyspace.deferred.count == 2)
        #expect(counts(stage.keyspace) == [0, 0, 0, 0])
        try stage.set("x", "1")
        try stage.publish()
        try stage.succeed()
        #expect(counts(stage.keyspace) == [3, 3, 1, 0])
        // Keys of 6, 6 and 1 bytes, each with a value of one.
        #expect(stage.keyspace.meter.byteCount == 16)
    }

    @Test func `what is stored because its time has come counts as well`() throws {
        let stage = try Stage()
        try stage.install(rules: deferringRules("late/", every: .milliseconds(20)))
        try stage.set("late/a", "1")
        try publish(stage)
        #expect(try #require(stage.backing.held()).count == 1)
        try stage.succeed()
        #expect(counts(stage.keyspace) == [1, 1, 1, 0])
    }

    @Test func `a change of a key in memory is no commit of storage`() throws {
        let stage = try Stage()
        try stage.install(rules: memoryRules("mem/"))
        try stage.set("mem/a", "1")
        // The backing is asked, and has nothing to do.
        try stage.publish()
        try stage.succeed()
        #expect(counts(stage.keyspace) == [0, 0, 0, 0])
        try stage.set("x", "1")
        try stage.publish()
        try stage.succeed()
        #expect(counts(stage.keyspace) == [1, 1, 1, 0])
    }

    @Test func `what a writer commits on its own thread counts`() throws {
        let backing = HeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        backing.open()
        for number in 0..<3 { try keyspace.apply([.set("k", [UInt8(number)])]) }
        #expect(counts(keyspace) == [3, 3, 3, 0])
    }

    @Test func `of a batch, only transactions with something for storage count`() throws {
        let stage = try Stage()
        try stage.install(rules: memoryRules("mem/"))
        for number in 0..<3 {
            try stage.set("mem/a", "\(number)")
            try stage.set("x", "\(number)")
        }
        try stage.publish()
        try stage.succeed()
        #expect(counts(stage.keyspace) == [3, 3, 1, 0])
    }

    @Test func `commits for which storage takes long are not neglected`() throws {
        let stage = try Stage()
        #expect(!stage.keyspace.neglectsCommits)
        try stage.set("x", "1")
        try stage.publish()
        _ = try #require(stage.backing.held())
        // More waits behind the one that storage has.
        try stage.set("x", "2")
        stage.keyspace.publish()
        #expect(!stage.keyspace.neglectsCommits)
        try stage.succeed()
        try stage.succeed()
    }
}
