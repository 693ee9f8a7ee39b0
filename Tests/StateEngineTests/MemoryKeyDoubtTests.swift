import StateEngine
import StateTestSupport
import Testing

/// Keys in memory beside commits whose outcome is unknown.
struct MemoryKeyDoubtTests {
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

    @Test(arguments: [true, false])
    func `what was told between commits in doubt is told in its order`(isKept: Bool) throws {
        try stage.install(rules: memoryRules("mem/"))
        try stage.set("x", "1")
        try stage.publish()
        let recorder = watch()
        try stage.set("mem/a", "1")
        try stage.set("y", "1")
        try stage.set("mem/b", "1")
        stage.keyspace.publish()
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
        #expect(recorder.revisions == (isKept ? [1, 2, 3, 4] : [1, 2, 4]))
        #expect(stage.faults() == [])
        #expect(stage.withCore { $0.pending.byteCount } == 0)
    }
}

extension Recorder {
    /// Those of the commits that were told.
    fileprivate var revisions: [Int64] {
        told.compactMap { if case .commit(let revision, _) = $0 { revision } else { nil } }
    }
}
