import Glibc
import StateEngine
import StateTestSupport
import Testing

/// Keys that a rule keeps in memory, beside those that storage keeps.
struct MemoryKeyTests {
    private let stage: Stage

    init() throws {
        stage = try Stage()
        try stage.install(rules: MemoryKeyTests.rules("mem/"))
    }

    /// Keeps the keys of a prefix in memory.
    private static func rules(_ prefix: String) throws -> KeyRules {
        let pattern = try Pattern(prefix)
        return KeyRules([pattern], memoryPatterns: [pattern], usages: [], texts: NoTexts()) {
            _ in
            var settings = KeyRule.Settings()
            settings.backing = KeyRule.Setting(value: .memory, rule: 0)
            return KeyRule(settings, quotas: [])
        }
    }

    private func isTold(
        _ body: (KeyspaceCore, inout Receipt) throws(StateError) -> Void
    ) throws(StateError) -> Bool {
        let (report, error) = stage.report(body)
        if let error { throw error }
        return report.isFinal
    }

    @Test func `a change of a key in memory is told at once, and no failed commit undoes it`()
        throws
    {
        try stage.set("stored", "1")
        try stage.publish()
        #expect(try isTold { (core, _) throws(StateError) in try core.set("mem/a", "1") })
        #expect(stage.observed(reading: "mem/a") == 0)
        try stage.set("stored", "2")
        #expect(try isTold { (core, _) throws(StateError) in try core.set("mem/a", "2") })
        stage.keyspace.publish()
        #expect(try isTold { (core, _) throws(StateError) in try core.delete("mem/b") } == false)
        #expect(try isTold { (core, _) throws(StateError) in try core.set("mem/b", "3") })
        try stage.fail()
        #expect(stage.newest() == ["mem/a": "2", "mem/b": "3"])
        #expect(stage.faults() == [])
        // Nothing of them is for storage, but they take their turn.
        #expect(stage.backing.held() == [])
        try stage.succeed()
        #expect(stage.durable() == ["mem/a": "2", "mem/b": "3"])
        #expect(stage.backing.kept == [] && stage.faults() == [])
        #expect(stage.withCore { $0.pending.byteCount } == 0)
    }

    @Test func `a transaction of keys in memory and stored ones is one commit`() throws {
        try stage.set("mem/a", "0")
        try stage.commit()
        let wasTold = try isTold { (core, _) throws(StateError) in
            try core.set("mem/a", "1")
            try core.set("x", "1")
            try core.set("mem/b", "1")
            try core.set("y", "1")
        }
        #expect(!wasTold)
        // What stands on it is as doubtful as it.
        #expect(try !isTold { (core, _) throws(StateError) in try core.set("mem/b", "2") })
        #expect(
            try !isTold { (core, receipt) throws(StateError) in
                _ = core.read("x", &receipt)
                try core.set("mem/c", "2")
            }
        )
        let rows = try stage.publish()
        #expect(rows.map { String(decoding: $0.key, as: UTF8.self) } == ["x", "y"])
        #expect(rows.map(\.ordinal) == [0, 1])
        try stage.fail()
        #expect(stage.newest() == ["mem/a": "0"] && stage.faults() == [])
    }

    @Test func `a full disk refuses no key in memory`() throws {
        for number in 1...3 {
            try stage.set("stored", "\(number)")
            try stage.publish()
            try stage.set("mem/a", "\(number)")
            try stage.fail()
            #expect(stage.newest() == ["mem/a": "\(number)"])
            _ = stage.backing.held()
            try stage.succeed()
            #expect(stage.durable() == ["mem/a": "\(number)"])
        }
    }

    @Test func `after an unknown outcome keys in memory go on, in the order of commits`() throws {
        let recorder = stage.withCore { core in
            let recorder = Recorder(PatternSet([.everything]), .now, in: core)
            core.hub.add(recorder.watcher)
            return recorder
        }
        try stage.set("stored", "1")
        try stage.publish()
        try stage.set("mem/a", "1")
        stage.backing.holdReopening()
        stage.backing.fail(StateError(.readOnly, "outcome unknown: a test"), isKept: true)
        try stage.settle()
        try stage.set("mem/a", "2")
        #expect(throws: StateError.self) { try stage.set("stored", "2") }
        stage.keyspace.publish()
        stage.backing.open()
        stage.backing.openAgain()
        while stage.durable() != ["stored": "1", "mem/a": "2"] { try stage.settle() }
        let revisions = recorder.told.compactMap { told -> Int64? in
            if case .commit(let revision, _) = told { revision } else { nil }
        }
        #expect(revisions == [1, 2, 3])
        #expect(stage.faults() == [])
    }

    @Test func `keys that move take effect as one commit, and storage records deletes`() throws {
        let stage = try Stage()
        try stage.set("other", "0")
        try stage.set("cache/a", "1")
        try stage.set("cache/b", "2")
        try stage.commit()
        #expect(try stage.install(rules: MemoryKeyTests.rules("cache/")) == 2)
        let rows = try #require(stage.backing.held())
        #expect(Set(rows.map(\.revision)) == [4])
        #expect(
            rows.map { "\(String(decoding: $0.key, as: UTF8.self)) \($0.value != nil)" }
                == ["cache/a false", "cache/b false"]
        )
        #expect(rows.map(\.ordinal) == [0, 1])
        #expect(rows.map(\.previousRevision) == [2, 3])
        try stage.succeed()
        #expect(stage.durable() == ["cache/a": "1", "cache/b": "2", "other": "0"])
        #expect(stage.faults() == [])
        try stage.set("cache/a", "3")
        try stage.delete("cache/b")
        try stage.commit()
        #expect(stage.backing.kept.count == 5)
        #expect(stage.durable() == ["cache/a": "3", "other": "0"])
        #expect(stage.faults() == [])
    }

    @Test func `rules that take the place of those of the start move no key`() throws {
        try stage.set("mem/a", "1")
        try stage.set("cache/a", "1")
        try stage.commit()
        stage.withCore { $0.replace(rules: memoryRules("cache/")) }
        #expect(stage.backing.kept.map { String(decoding: $0.key, as: UTF8.self) } == ["cache/a"])
        for key in ["mem/a", "mem/b", "cache/a", "cache/b"] { try stage.set(key, "2") }
        let rows = try stage.publish()
        #expect(rows.map { String(decoding: $0.key, as: UTF8.self) } == ["cache/a", "cache/b"])
        #expect(rows.map(\.previousRevision) == [2, 0])
        try stage.fail()
        #expect(stage.newest() == ["mem/a": "2", "mem/b": "2", "cache/a": "1"])
        stage.withCore { $0.replace(rules: nil) }
        #expect(try isTold { (core, _) throws(StateError) in try core.set("mem/a", "3") })
        #expect(stage.faults() == [])
    }

    @Test func `what notes of files a start reads and writes waits for the move that goes before`()
        throws
    {
        try stage.set("cache/a", "1")
        try stage.commit()
        stage.backing.setFileContainers("[]")
        try stage.install(rules: MemoryKeyTests.rules("cache/"))
        _ = try #require(stage.backing.held())
        let keyspace = stage.keyspace
        let attaching = WorkerThread(name: "attaching")
        let outcome = Observed<String?>(nil)
        let thread = Observed<Int32?>(nil)
        attaching.start {
            thread.update { $0 = currentThread() }
            let result = Result { () throws(StateError) in try keyspace.attach(nil) }
            outcome.update { $0 = "\(result)" }
        }
        let number = try #require(thread.take { $0 })
        // It waits for its turn, unless it has not waited for that.
        try #require(eventually { outcome.current != nil || isAsleep(number) })
        #expect(outcome.current == nil && stage.backing.overlapCount == 0)
        stage.backing.open()
        try stage.settle()
        attaching.join()
        #expect(stage.backing.overlapCount == 0)
        #expect(outcome.current?.hasPrefix("success") == true)
        #expect(stage.backing.fileContainers() == "")
    }

    @Test func `a move that fails leaves every key where it was`() throws {
        try stage.set("cache/a", "1")
        try stage.commit()
        try stage.install(rules: MemoryKeyTests.rules("cache/"))
        _ = stage.backing.held()
        try stage.fail()
        #expect(stage.newest() == ["cache/a": "1"] && stage.faults() == [])
        #expect(stage.withCore { $0.read("cache/a")?.isVolatile } == false)
    }

    @Test(arguments: Seed.each(20))
    func `random transactions and failures leave what a model says`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var model: [String: String] = [:]
        /// What the stored keys were when the last commit ended, and what was told since.
        var durable: [String: String] = [:]
        var doubtful: Set<String> = []
        var hasQueued = false
        for step in 0..<300 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0 where hasQueued:
                _ = stage.backing.held()
                try stage.succeed()
                hasQueued = false
                while stage.withCore({ $0.revisions.provisional > $0.revisions.durable }) {
                    stage.keyspace.publish()
                    _ = stage.backing.held()
                    try stage.succeed()
                }
                durable = model
                doubtful = []
            case 1 where hasQueued:
                _ = stage.backing.held()
                try stage.fail()
                hasQueued = stage.withCore { $0.revisions.provisional > $0.revisions.durable }
                model = durable
                doubtful = []
            case 2:
                if stage.keyspace.publish() { Issue.record("settled without storage") }
                hasQueued =
                    hasQueued || stage.withCore { $0.revisions.provisional > $0.revisions.durable }
            default:
                let names = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                    (random.chance(50) ? "mem/" : "s") + "\(Int.random(in: 0..<4, using: &random))"
                }
                let isDelete = random.chance(25)
                let before = model
                let told = try isTold { (core, receipt) throws(StateError) in
                    for name in names {
                        if isDelete {
                            try core.delete(name, &receipt)
                        } else {
                            try core.set(name, "\(step)")
                        }
                    }
                }
                for name in names { model[name] = isDelete ? nil : "\(step)" }
                let changed = names.filter { !isDelete || before[$0] != nil }
                if told {
                    // What it looked at and what it changed is certain.
                    #expect(changed.allSatisfy { $0.hasPrefix("mem/") })
                    #expect(doubtful.isDisjoint(with: names), "\(names) at \(step)")
                    for name in changed { durable[name] = model[name] }
                } else {
                    doubtful.formUnion(changed)
                }
            }
            #expect(stage.newest() == model, "step \(step)")
            #expect(stage.faults() == [])
        }
    }

    @Test func `what a former life had in memory is forgotten, whatever the rules say now`() throws
    {
        let directory = try TemporaryDirectory()
        let file = MemoryKeysFile(path: directory.path(of: "memory.patterns"))
        #expect(try file.beginLife(after: 0, storedThrough: 0) { Issue.record($0) } == [])
        try file.add(["cache/"])
        let cache = ForgottenKeys(pattern: "cache/", lastRevision: 100)
        #expect(try file.beginLife(after: 100, storedThrough: 0) { Issue.record($0) } == [cache])
        try file.add(["session/"])
        let forgotten = try file.beginLife(after: 200, storedThrough: 0) { Issue.record($0) }
        #expect(Set(forgotten) == [cache, ForgottenKeys(pattern: "session/", lastRevision: 200)])
        stage.keyspace.forget(forgotten)
        let isForgotten = { (pattern: Pattern, revision: Int64) in
            stage.withCore { $0.hasForgotten(PatternSet([pattern]), after: revision) }
        }
        #expect(isForgotten("cache/a", 100) && isForgotten("session/", 200))
        #expect(isForgotten(.everything, 150))
        #expect(!isForgotten("cache/a", 101) && !isForgotten("other/", 1))
    }
}
