import StateEngine
import StateTestSupport
import Testing

/// Keys that move to memory or to storage by a commit whose outcome is unknown.
struct MoveInDoubtTests {
    private static let unknown = StateError(.readOnly, "outcome unknown: the sync failed")
    private let stage: Stage

    init() throws { stage = try Stage() }

    private func watch() -> Recorder {
        stage.withCore { core in
            let recorder = Recorder(PatternSet([.everything]), .now, in: core)
            core.hub.add(recorder.watcher)
            return recorder
        }
    }

    private func isVolatile(_ key: String) -> Bool? {
        stage.withCore { $0.read(key)?.isVolatile }
    }

    @Test func `a move to memory that storage has after all loses no value`() throws {
        try stage.set("cache/a", "one")
        try stage.set("x", "1")
        try stage.publish()
        // Both the value and its move are in the commit that follows.
        try stage.set("cache/b", "two")
        #expect(try stage.exchange(rules: memoryRules("cache/")) == 2)
        try stage.succeed()
        let rows = try #require(stage.backing.held())
        #expect(rows.map { $0.value != nil } == [true, false, false])
        let recorder = watch()
        stage.backing.fail(Self.unknown, isKept: true)
        try stage.settle()
        try stage.settle()
        #expect(stage.durable() == ["cache/a": "one", "cache/b": "two", "x": "1"])
        #expect(stage.newest() == stage.durable())
        #expect(isVolatile("cache/a") == true && isVolatile("cache/b") == true)
        #expect(stage.keyspace.keyCount == 3 && stage.faults() == [])
        #expect(recorder.revisions == [3, 4])
        // What was moved is known to be deleted in storage, where it may come back.
        try stage.set("cache/a", "three")
        _ = try stage.publish()
        try stage.succeed()
        #expect(try stage.exchange(rules: memoryRules("other/")) == 2)
        let back = try #require(stage.backing.held())
        #expect(back.map(\.previousRevision) == [4, 4])
        try stage.succeed()
        #expect(stage.durable() == ["cache/a": "three", "cache/b": "two", "x": "1"])
        #expect(stage.faults() == [])
    }

    @Test func `a delete before the move stays a delete`() throws {
        try stage.set("cache/a", "one")
        try stage.set("cache/gone", "1")
        try stage.publish()
        try stage.delete("cache/gone")
        try stage.exchange(rules: memoryRules("cache/"))
        try stage.succeed()
        _ = try #require(stage.backing.held())
        stage.backing.fail(Self.unknown, isKept: true)
        try stage.settle()
        try stage.settle()
        #expect(stage.durable() == ["cache/a": "one"] && stage.faults() == [])
    }

    @Test func `until it is known nothing is written to what may have moved`() throws {
        try stage.set("cache/a", "one")
        try stage.commit()
        try stage.exchange(rules: memoryRules("cache/"))
        _ = try #require(stage.backing.held())
        // Told at once: no failure undoes it.
        try stage.set("cache/new", "hello")
        stage.backing.holdReopening()
        stage.backing.fail(Self.unknown)
        try stage.settle()
        #expect(throws: StateError.self) { try stage.set("cache/a", "x") }
        #expect(throws: StateError.self) { try stage.delete("cache/a") }
        #expect(throws: StateError.self) { try stage.set("cache/late", "x") }
        #expect(stage.newest() == ["cache/a": "one", "cache/new": "hello"])
        stage.backing.openAgain()
        try stage.settle()
        #expect(stage.durable() == ["cache/a": "one", "cache/new": "hello"])
        #expect(stage.faults() == [])
    }

    @Test func `the former rules hold again without a move, and what was told moves when it can`()
        throws
    {
        try stage.set("cache/a", "one")
        try stage.commit()
        try stage.exchange(rules: memoryRules("cache/"))
        _ = try #require(stage.backing.held())
        try stage.set("cache/new", "hello")
        stage.backing.holdReopening()
        stage.backing.fail(Self.unknown)
        try stage.settle()
        let cause = stage.cause(7)
        let move = { () throws(StateError) in
            try stage.withCore { (core) throws(StateError) in
                try core.moveAstray(cause, at: 1_000)
            }
        }
        stage.withCore { $0.restore(rules: nil) }
        #expect(throws: StateError.self) { _ = try move() }
        stage.backing.openAgain()
        try stage.settle()
        #expect(try move() == 1)
        let rows = try stage.publish()
        #expect(rows.map { String(decoding: $0.key, as: UTF8.self) } == ["cache/new"])
        #expect(rows.map(\.previousRevision) == [0])
        try stage.succeed()
        #expect(try move() == 0)
        #expect(stage.durable() == ["cache/a": "one", "cache/new": "hello"])
        #expect(isVolatile("cache/a") == false && isVolatile("cache/new") == false)
        #expect(stage.faults() == [])
    }

    @Test(arguments: [true, false])
    func `what was told between commits in doubt is told in its order`(isKept: Bool) throws {
        try stage.exchange(rules: memoryRules("mem/"))
        try stage.set("x", "1")
        try stage.publish()
        let recorder = watch()
        try stage.set("mem/a", "1")
        try stage.set("y", "1")
        try stage.set("mem/b", "1")
        // mem/a and mem/b are stored from now on: what is adopted supersedes what was told.
        #expect(try stage.exchange(rules: memoryRules("other/")) == 2)
        try stage.succeed()
        _ = try #require(stage.backing.held())
        stage.backing.holdReopening()
        stage.backing.fail(Self.unknown, isKept: isKept)
        try stage.settle()
        #expect(stage.newest() == ["x": "1", "mem/a": "1", "mem/b": "1"])
        stage.backing.openAgain()
        try stage.settle()
        let stored = isKept ? ["x": "1", "y": "1"] : ["x": "1"]
        #expect(stage.durable() == stored.merging(["mem/a": "1", "mem/b": "1"]) { $1 })
        #expect(recorder.revisions == (isKept ? [1, 2, 3, 4, 5] : [1, 2, 4]))
        #expect(isVolatile("mem/a") == !isKept && stage.faults() == [])
        #expect(stage.withCore { $0.pending.byteCount } == 0)
    }
}

extension Recorder {
    /// Those of the commits that were told.
    fileprivate var revisions: [Int64] {
        told.compactMap { if case .commit(let revision, _) = $0 { revision } else { nil } }
    }
}
