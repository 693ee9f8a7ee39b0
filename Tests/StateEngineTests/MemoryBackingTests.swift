import StateEngine
import StateTestSupport
import Testing

@Suite struct MemoryBackingTests {
    @Test func `a commit is told and answered before the call returns`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let watcher = keyspace.withCore { Recorder(PatternSet([.everything]), .now, in: $0) }
        keyspace.withCore { $0.hub.add(watcher.watcher) }
        let answer = Observed<Result<Int64, StateError>?>(nil)
        keyspace.submit([.set("k", [])]) { given in answer.update { $0 = given } }
        #expect(answer.current == .success(1))
        #expect(watcher.take() == [.commit(1, [.init(key: "k", value: "", previous: nil)])])
        #expect(keyspace.entry(for: "k")?.revision == 1)
        #expect(keyspace.keyCount == 1)
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])
    }

    @Test func `a deleted key leaves nothing behind`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        for _ in 0..<3 {
            try keyspace.apply([.set("k", [1])])
            try keyspace.apply([.delete("k")])
        }
        #expect(keyspace.keyCount == 0)
        #expect(keyspace.revision == 6)
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])
    }

    @Test func `several transactions settled at once follow each other`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let watcher = keyspace.withCore { Recorder(PatternSet([.everything]), .now, in: $0) }
        keyspace.withCore { core in
            core.hub.add(watcher.watcher)
            let cause = core.retainCause(Cause(uid: 1, gid: 1, pid: 1, command: "test"))
            defer { core.release(cause) }
            for value in ["a", "b", nil, "c"] as [String?] {
                var receipt = core.makeReceipt()
                core.begin(cause, at: 0)
                if let value { try? core.set("k", value) } else { _ = try? core.delete("k") }
                core.finish(&receipt)
            }
        }
        #expect(watcher.take() == [])
        #expect(keyspace.publish())
        keyspace.settle { _ in }
        #expect(
            watcher.take() == [
                .commit(1, [.init(key: "k", value: "a", previous: nil)]),
                .commit(2, [.init(key: "k", value: "b", previous: "a")]),
                .commit(3, [.init(key: "k", value: nil, previous: "b")]),
                .commit(4, [.init(key: "k", value: "c", previous: nil)]),
            ]
        )
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])
    }

    @Test func `each start is another epoch`() throws {
        let first = try LocalKeyspace(backing: MemoryBacking())
        let second = try LocalKeyspace(backing: MemoryBacking())
        #expect(first.epoch != second.epoch)
        first.close()
        second.close()
    }
}
