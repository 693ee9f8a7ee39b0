import StateEngine
import StateTestSupport
import Testing

/// Keys whose rule lets storage have their changes later than readers.
struct DeferralTests {
    private static let unknown = StateError(.readOnly, "outcome unknown: the sync failed")
    private let stage: Stage

    init() throws {
        stage = try Stage()
        try stage.install(rules: deferringRules("late/", every: .seconds(3_600)))
    }

    /// Sets a key that is stored later, up to the answer.
    private func write(_ key: String, _ value: String) throws {
        let (report, error) = stage.report { (core, _) throws(StateError) in
            try core.set(key, value)
        }
        #expect(error == nil && report.isFinal)
    }

    /// Hands over what was written, where storage has nothing to do, and settles it.
    private func settleDeferred() throws {
        stage.keyspace.publish()
        try stage.settle()
    }

    private func durability(_ key: String) -> Durability? {
        stage.withCore { core in
            var receipt = core.makeReceipt()
            return core.read(key, &receipt).map { core.durability(of: $0) }
        }
    }

    /// The keys and values of a commit that waits.
    private func texts(_ changes: [HeldBacking.Change]) -> [String] {
        changes.map { change in
            let value = change.value.map { String(decoding: $0, as: UTF8.self) } ?? "-"
            return "\(change.revision) \(String(decoding: change.key, as: UTF8.self)) \(value)"
        }
    }

    private func storeEverything() throws {
        let cause = stage.cause(7)
        try stage.withCore { (core) throws(StateError) in
            var receipt = core.makeReceipt()
            try core.storeEverything(&receipt, cause)
            #expect(receipt.revision == core.revisions.newest)
        }
    }

    @Test func `a change is answered and visible at once, and stored with the next that waits`()
        throws
    {
        try write("late/a", "1")
        try settleDeferred()
        #expect(stage.durable() == ["late/a": "1"])
        #expect(stage.backing.attemptCount == 0 && durability("late/a") == .interval)
        try write("late/a", "2")
        try settleDeferred()
        #expect(stage.keyspace.deferred.count == 2)
        try stage.set("x", "1")
        #expect(texts(try stage.publish()) == ["1 late/a 1", "2 late/a 2", "3 x 1"])
        #expect(stage.backing.waiting?.map(\.previousRevision) == [0, 1, 0])
        try stage.succeed()
        #expect(durability("late/a") == .synced && stage.keyspace.deferred.count == 0)
        #expect(stage.faults() == [] && stage.withCore { $0.pending.byteCount } == 0)
    }

    @Test func `it is stored when its time has come`() throws {
        let stage = try Stage()
        try stage.install(rules: deferringRules("late/", every: .milliseconds(20)))
        try stage.set("late/a", "1")
        stage.keyspace.publish()
        try stage.settle()
        #expect(texts(try #require(stage.backing.held())) == ["1 late/a 1"])
        try stage.succeed()
        #expect(stage.keyspace.deferred.count == 0)
        #expect(stage.withCore { $0.revisions.stored } == 1)
    }

    @Test func `a commit that fails leaves it for the next`() throws {
        try write("late/a", "1")
        try settleDeferred()
        try stage.set("x", "1")
        try write("late/b", "1")
        try stage.publish()
        try stage.fail()
        #expect(stage.newest() == ["late/a": "1", "late/b": "1"] && stage.faults() == [])
        try stage.settle()
        #expect(stage.durable() == ["late/a": "1", "late/b": "1"])
        #expect(durability("late/b") == .interval && stage.backing.kept == [])
        try storeEverything()
        #expect(texts(try stage.publish()) == ["1 late/a 1", "3 late/b 1"])
        try stage.succeed()
        #expect(durability("late/a") == .synced && stage.faults() == [])
        #expect(stage.withCore { $0.pending.byteCount } == 0)
    }

    @Test(arguments: [true, false])
    func `after an unknown outcome it is there once`(isKept: Bool) throws {
        try write("late/a", "1")
        try settleDeferred()
        let recorder = stage.withCore { core in
            let recorder = Recorder(PatternSet([.everything]), .now, in: core)
            core.hub.add(recorder.watcher)
            return recorder
        }
        try stage.set("x", "1")
        try write("late/b", "1")
        try stage.publish()
        stage.backing.holdReopening()
        stage.backing.fail(Self.unknown, isKept: isKept)
        try stage.settle()
        #expect(stage.newest() == ["late/a": "1", "late/b": "1"])
        stage.backing.openAgain()
        try stage.settle()
        if !isKept { try stage.settle() }
        let stored = isKept ? ["x": "1"] : [:]
        #expect(stage.durable() == stored.merging(["late/a": "1", "late/b": "1"]) { $1 })
        #expect(recorder.revisions == (isKept ? [2, 3] : [3]))
        #expect(stage.faults() == [] && stage.withCore { $0.pending.byteCount } == 0)
        #expect(stage.keyspace.deferred.count == (isKept ? 0 : 2))
        if isKept {
            #expect(texts(stage.backing.kept) == ["1 late/a 1", "2 x 1", "3 late/b 1"])
            #expect(stage.withCore { $0.revisions.stored } == 3)
        } else {
            try storeEverything()
            #expect(texts(try stage.publish()) == ["1 late/a 1", "3 late/b 1"])
            try stage.succeed()
        }
    }

    @Test func `who asks for stable storage waits for it, and what reads from a doubtful commit`()
        throws
    {
        let (report, _) = stage.report { (core, _) throws(StateError) in
            try core.set("late/a", "1")
            var transaction = Transaction(in: core, core.makeReceipt())
            transaction.storeAtOnce()
        }
        #expect(!report.isFinal && report.awaited == report.revision)
        let (doubtful, _) = stage.report { (core, _) throws(StateError) in
            try core.set("late/a", "2")
        }
        #expect(!doubtful.isFinal)
        #expect(texts(try stage.publish()) == ["1 late/a 1", "2 late/a 2"])
        try stage.succeed()
        #expect(durability("late/a") == .synced)
    }

    @Test func `a transaction with a stored key is stored at once`() throws {
        let (report, _) = stage.report { (core, _) throws(StateError) in
            try core.set("late/a", "1")
            try core.set("x", "1")
        }
        #expect(!report.isFinal)
        #expect(texts(try stage.publish()) == ["1 late/a 1", "1 x 1"])
        try stage.succeed()
    }

    @Test func `more than the bound is stored at once`() throws {
        stage.keyspace.setDeferredByteLimit(430)
        try write("late/a", "1")
        try settleDeferred()
        try write("late/b", String(repeating: "x", count: 20))
        stage.keyspace.publish()
        #expect(stage.backing.held()?.count == 2)
        try stage.succeed()
        #expect(stage.keyspace.deferred.count == 0 && stage.keyspace.deferred.byteCount == 0)
    }

    @Test func `what storage refuses beyond the bound is tried again, and later changes wait`()
        throws
    {
        stage.keyspace.setDeferredByteLimit(0)
        try write("late/a", "1")
        stage.keyspace.publish()
        _ = try #require(stage.backing.held())
        try stage.fail()
        while stage.durable().isEmpty { try stage.settle() }
        #expect(stage.durable() == ["late/a": "1"] && durability("late/a") == .interval)
        #expect(stage.withCore { $0.admission.refusals.cannotDefer })
        // It is not asked again at once.
        #expect(stage.backing.waiting == nil && stage.backing.attemptCount == 1)
        let (report, _) = stage.report { (core, _) throws(StateError) in try core.set("late/a", "2")
        }
        #expect(!report.isFinal && report.awaited == 2)
        #expect(texts(try stage.publish()) == ["1 late/a 1", "2 late/a 2"])
        try stage.succeed()
        while stage.withCore({ $0.revisions.stored }) < 2 { try stage.settle() }
        #expect(stage.withCore { !$0.admission.refusals.cannotDefer })
        #expect(stage.keyspace.deferred.count == 0 && stage.faults() == [])
        stage.keyspace.setDeferredByteLimit(1_000)
        try write("late/a", "3")
        try settleDeferred()
        #expect(stage.backing.attemptCount == 2 && durability("late/a") == .interval)
    }

    @Test func `what was refused is stored once storage can`() throws {
        stage.keyspace.setDeferredByteLimit(0)
        try write("late/a", "1")
        stage.keyspace.publish()
        _ = try #require(stage.backing.held())
        stage.backing.fail(StateError(.noSpace, "the disk is full"))
        // The next try comes by itself.
        #expect(eventually { stage.backing.attemptCount == 2 })
        stage.backing.release()
        #expect(eventually { texts(stage.backing.kept) == ["1 late/a 1"] })
    }

    @Test func `those who ask for everything wait for the same revision`() throws {
        try write("late/a", "1")
        try settleDeferred()
        try storeEverything()
        let newest = stage.withCore { $0.revisions.newest }
        try storeEverything()
        #expect(stage.withCore { $0.revisions.newest } == newest)
        #expect(texts(try stage.publish()) == ["1 late/a 1"])
        try stage.succeed()
        #expect(stage.withCore { $0.revisions.stored } == newest)
    }

    @Test func `the end stores it`() throws {
        let backing = HeldBacking()
        let stage = try Stage(backing)
        try stage.install(rules: deferringRules("late/", every: .seconds(3_600)))
        try stage.set("late/a", "1")
        stage.keyspace.publish()
        try stage.settle()
        backing.open()
        stage.keyspace.close()
        #expect(texts(backing.kept) == ["1 late/a 1"] && stage.keyspace.deferred.count == 0)
    }

    @Test func `whoever reads the history waits until it has it`() throws {
        try write("late/a", "1")
        try settleDeferred()
        stage.backing.open()
        try stage.keyspace.waitForDeferred()
        #expect(texts(stage.backing.kept) == ["1 late/a 1"])
        // Then there is nothing to wait for.
        stage.backing.hold()
        try stage.keyspace.waitForDeferred()
    }

    @Test func `whoever waits for storage that has failed can be sent away at the end`() throws {
        try write("late/a", "1")
        try settleDeferred()
        stage.backing.fail(StateError(.noSpace, "disk full"))
        try stage.set("b", "2")
        stage.keyspace.publish()
        let keyspace = stage.keyspace
        // Nobody settles the failure, so nothing is committed.
        try #require(eventually { stage.backing.attemptCount == 1 })
        onThreads(2) { number in
            guard number == 0 else { return keyspace.endWaitsForDeferred() }
            #expect(throws: StateError.self) { try keyspace.waitForDeferred() }
        }
        try stage.settle()
    }

    @Test func `what a crash has lost is known by its revisions`() throws {
        let directory = try TemporaryDirectory()
        let file = MemoryKeysFile(path: directory.path(of: "memory.patterns"))
        func begin(
            after last: Int64,
            _ stored: Int64,
            hasAll: Bool = false
        ) throws -> [ForgottenKeys] {
            try file.beginLife(
                after: last,
                storedThrough: stored,
                hasAllDeferred: hasAll
            ) { Issue.record($0) }
        }
        try file.add([], deferred: ["late/"])
        try file.endLife()
        #expect(try begin(after: 50, 50) == [])
        try file.add([], deferred: ["late/"])
        let lost = ForgottenKeys(pattern: "late/", storedRevision: 70, lastRevision: 100)
        #expect(try begin(after: 100, 70) == [lost])
        try file.add([], deferred: ["late/"])
        try file.endLife()
        #expect(try begin(after: 200, 200) == [lost])
        try file.add([], deferred: ["late/"])
        // A crash of the process alone: what was deferred was kept.
        #expect(try begin(after: 250, 240, hasAll: true) == [lost])
        try file.add([], deferred: ["late/"])
        let both = ForgottenKeys(pattern: "late/", storedRevision: 70, lastRevision: 300)
        #expect(try begin(after: 300, 250) == [both])
        stage.keyspace.forget([lost])
        let isForgotten = { (pattern: Pattern, revision: Int64) in
            stage.withCore { $0.hasForgotten(PatternSet([pattern]), after: revision) }
        }
        #expect(!isForgotten("late/a", 70) && isForgotten("late/a", 71))
        #expect(isForgotten("late/a", 100) && !isForgotten("late/a", 101))
        #expect(!isForgotten("other/", 80))
    }
}

extension Recorder {
    /// Those of the commits that were delivered.
    fileprivate var revisions: [Int64] {
        told.compactMap { if case .commit(let revision, _) = $0 { revision } else { nil } }
    }
}
