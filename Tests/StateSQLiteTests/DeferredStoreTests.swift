import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import Testing

/// Changes that storage may have later, on a disk that fails.
struct DeferredStoreTests {
    private let store: TemporaryStore
    private let files: FaultyFiles
    private let keyspace: LocalKeyspace

    init() throws {
        store = try TemporaryStore()
        try store.fill([])
        files = FaultyFiles(try LogDirectory(store.log))
        keyspace = try LocalKeyspace(backing: store.backing(on: files) { $0.log.patience = 0 })
        let rules = deferringRules("late/", every: .seconds(3_600))
        try asWriter { (core, cause) throws(StateError) in
            _ = try core.install(rules: rules, cause: cause, at: 1)
        }
    }

    private func asWriter(
        _ body: (KeyspaceCore, InternedCause) throws(StateError) -> Void
    ) throws(StateError) {
        try keyspace.withCore { (core) throws(StateError) in
            let cause = core.retainCause(Cause(uid: 1, gid: 1, pid: 1, command: "test"))
            defer { core.release(cause) }
            try body(core, cause)
        }
        keyspace.publish()
    }

    private func set(_ key: Key, _ value: UInt8) throws -> Int64 {
        try keyspace.apply([.set(key, [value])])
    }

    /// As STATE.SYNC: waits behind a commit of its own that changes nothing.
    private func sync() throws {
        try asWriter { (core, cause) throws(StateError) in
            var receipt = core.makeReceipt()
            try core.storeEverything(&receipt, cause)
        }
        try #require(eventually { keyspace.deferred.count == 0 })
    }

    @Test func `durable before told: what a sync has stored is known when it is opened again`()
        throws
    {
        _ = try set("a", 1)
        _ = try set("late/a", 1)
        try sync()
        files.fail(.sync, isLasting: true)
        files.fail(.write, isLasting: true)
        #expect(throws: StateError.self) { try set("b", 2) }
        files.heal()
        #expect(eventually { (try? set("c", 3)) != nil })
        keyspace.close()
        let changes = try store.contents().changes
        let keys = changes.map { String(decoding: $0.plain.key, as: UTF8.self) }
        #expect(keys.filter { $0 == "late/a" }.count == 1 && keys.last == "c")
    }

    @Test
    func
        `durable before acknowledged: a commit of unknown outcome takes nothing from what handlers have noted`()
        throws
    {
        func text(_ name: String) -> String? {
            keyspace.withCore { core in
                var receipt = core.makeReceipt()
                return core.metadataText(name, &receipt)
            }
        }
        try asWriter { (core, cause) throws(StateError) in
            core.begin(cause, at: 1)
            var receipt = core.makeReceipt()
            do throws(StateError) { try core.setMetadata("handler:a", to: "7") } catch {
                core.rollBack()
                throw error
            }
            _ = core.finish(&receipt)
        }
        _ = try set("a", 1)
        files.fail(.sync, isLasting: true)
        files.fail(.write, isLasting: true)
        #expect(throws: StateError.self) { try set("b", 2) }
        files.heal()
        #expect(eventually { (try? set("c", 3)) != nil })
        #expect(text("handler:a") == "7")
        keyspace.close()
        #expect(try store.contents().loaded.metadata["handler:a"] == "7")
    }

    @Test func `nothing is compacted up to a change that could not be stored`() throws {
        _ = try set("a", 1)
        let stored = try set("a", 2)
        let late = try set("late/a", 1)
        for call in [.sync, .write] as [FaultyFiles.Call] {
            files.fail(call, with: ENOSPC, isLasting: true)
        }
        #expect(throws: StateError.self) { try keyspace.compact(to: late) }
        try #require(files.failedCount > 0 && keyspace.deferred.count == 1)
        #expect(keyspace.withCore { $0.revisions.compacted } <= stored)
        files.heal()
        #expect(eventually { (try? keyspace.compact(to: late).compacted) == late })
        #expect(keyspace.deferred.count == 0)
        keyspace.close()
    }

    @Test(arguments: [FaultyFiles.Call.sync, .write])
    func
        `durable before told: what cannot be synced until the end is in the next start, or known to be lost`(
            call: FaultyFiles.Call
        ) throws
    {
        keyspace.prepareToDefer()
        _ = try set("a", 1)
        files.fail(call, with: ENOSPC, isLasting: true)
        let isKept = call == .sync
        // What cannot be written has an unknown outcome, as that of any other key.
        let late = try? set("late/a", 2)
        #expect((late != nil) == isKept)
        keyspace.close()
        #expect(keyspace.deferred.count == 1 && keyspace.keepsRest == isKept)
        files.heal()
        for _ in 1...2 {
            let next = store.backing()
            let contents = try Contents(of: next)
            #expect(contents.changes.count == (isKept ? 2 : 1) && next.hasAllDeferred == isKept)
            if isKept {
                #expect(contents.loaded.revision == late)
                #expect(contents.changes.last?.plain.value == [2])
            }
            next.close()
        }
    }

    /// Sets `late/a` as the loop of the daemon does it, which commits it and answers later.
    private func submitLate() throws {
        try keyspace.withCore { (core) throws(StateError) in
            let cause = core.retainCause(Cause(uid: 1, gid: 1, pid: 1, command: "test"))
            defer { core.release(cause) }
            var receipt = core.makeReceipt()
            core.begin(cause, at: 1)
            try Array("late/a".utf8).withBorrowed { (key) throws(StateError) in
                try [1].withBorrowed { (value) throws(StateError) in
                    try core.set(key, to: value, expiry: .ruled)
                }
            }
            core.finish(&receipt)
        }
        keyspace.publish(commitsOnCaller: true, keeps: false)
    }

    @Test(arguments: [0, 1_000])
    func `bounded: beyond the limit, what is kept is shown only once it is stored`(
        limit: Int
    ) throws {
        keyspace.setDeferredByteLimit(limit)
        keyspace.settleElsewhere {}
        let (writeCount, syncCount) = (files.count(of: .write), files.count(of: .sync))
        try submitLate()
        #expect(keyspace.hasUnkept)
        keyspace.keepPublished()
        #expect(eventually { files.count(of: .write) > writeCount })
        // The commit thread commits it if it was not idle.
        if limit == 0 {
            let hasUnkept = keyspace.hasUnkept
            if files.count(of: .sync) == syncCount { #expect(hasUnkept) }
        } else {
            let isKept = eventually { !keyspace.hasUnkept }
            #expect(isKept)
        }
        keyspace.commitOnCaller()
        let isKept = eventually {
            keyspace.settle { _ in }
            return !keyspace.hasUnkept
        }
        #expect(isKept)
        keyspace.close()
    }

    @Test func `what is in doubt until the end counts as not stored`() throws {
        _ = try set("a", 1)
        try asWriter { (core, cause) throws(StateError) in
            // One commit: its outcome will be unknown.
            for key in ["late/a", "b"] {
                core.begin(cause, at: 1)
                var receipt = core.makeReceipt()
                do throws(StateError) {
                    try Array(key.utf8).withBorrowed { (bytes) throws(StateError) in
                        try core.set(bytes, to: bytes, expiry: .ruled)
                    }
                } catch {
                    core.rollBack()
                    throw error
                }
                _ = core.finish(&receipt)
            }
            for call in FaultyFiles.Call.allCases { files.fail(call, isLasting: true) }
        }
        try #require(eventually { keyspace.withCore { $0.admission.refusals.reopening != nil } })
        keyspace.close()
        #expect(keyspace.deferred.count == 1)
    }
}
