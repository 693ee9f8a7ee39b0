import StateEngine
import StateTestSupport
import Testing

/// The laws of the design that hold for the keyspace, by their names.
@Suite struct LawTests {
    @Test func `Durable before told`() throws {
        let stage = try Stage()
        let log = Observed<[String]>([])
        let watcher = try stage.watch("/")
        watcher.onTold = { _ in log.update { $0.append("event") } }
        stage.keyspace.submit([.set("k", [1])]) { _ in log.update { $0.append("reply") } }
        #expect(stage.backing.held() != nil)
        #expect(stage.keyspace.entry(for: "k") == nil)
        #expect(stage.keyspace.entries(.everything, after: nil, limit: 9).isEmpty)
        #expect(stage.keyspace.keyCount == 0)
        #expect(stage.keyspace.revision == 0)
        // A refusal tells of it too, so it waits.
        stage.keyspace.submit([.set("k", [2], ifRevision: 0)]) { answer in
            log.update { $0.append("refused: \(answer == .success(2))") }
        }
        #expect(log.current == [])
        try stage.succeed()
        #expect(log.current == ["event", "reply", "refused: false"])
        #expect(stage.keyspace.entry(for: "k")?.value == [1])
    }

    @Test func `Ordered`() throws {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let watchers = (0..<3).map { _ in
            keyspace.withCore { Recorder(PatternSet([.everything]), .now, in: $0) }
        }
        keyspace.withCore { core in for watcher in watchers { core.hub.add(watcher.watcher) } }
        let answers = Observed<[Int64]>([])
        onThreads(8) { thread in
            for number in 0..<200 {
                let key = Key(verified: "key/\(number % 7)")
                let revision = try? keyspace.apply([.set(key, [UInt8(thread)])])
                answers.update { $0.append(revision ?? 0) }
            }
        }
        let told = keyspace.withCore { _ in watchers.map { $0.take() } }
        let revisions = told[0].map { notice -> Int64 in
            guard case .commit(let revision, _) = notice else { return 0 }
            return revision
        }
        // In order, none twice, none left out, the same for each, and as they were answered and stored.
        #expect(revisions == Array(1...1_600))
        #expect(told[1] == told[0] && told[2] == told[0])
        #expect(answers.current.sorted() == revisions)
        #expect(backing.kept.map(\.revision) == revisions)
    }

    @Test func `Atomic`() throws {
        let stage = try Stage()
        let watcher = try stage.watch("/")
        try stage.set("old", "1")
        try stage.commit()
        _ = watcher.take()
        // A condition that fails refuses all of it, what stands before it too.
        let answers = Observed<[Result<Int64, StateError>]>([])
        stage.keyspace.submit([.set("a", [1]), .delete("old"), .check("old", revision: 9)]) {
            answer in
            answers.update { $0.append(answer) }
        }
        #expect(
            answers.current == [.failure(StateError(.conflict, "key 'old' is absent (revision 0)"))]
        )
        #expect(stage.newest() == ["old": "1"])
        // A commit that fails leaves nothing of it, and tells nobody.
        stage.keyspace.submit([.set("a", [1]), .delete("old")]) { answer in
            answers.update { $0.append(answer) }
        }
        try stage.fail()
        #expect(answers.current.last == .failure(StateError(.noSpace, "the disk is full")))
        #expect(stage.newest() == ["old": "1"])
        #expect(watcher.take() == [])
        // One that succeeds is told as one.
        stage.keyspace.submit([.set("a", []), .delete("old"), .set("b", [])]) { answer in
            answers.update { $0.append(answer) }
        }
        try stage.succeed()
        #expect(answers.current.last == .success(3))
        #expect(
            watcher.take() == [
                .commit(
                    3,
                    [
                        .init(key: "a", value: "", previous: nil),
                        .init(key: "old", value: nil, previous: "1"),
                        .init(key: "b", value: "", previous: nil),
                    ]
                )
            ]
        )
    }

    @Test func `Reads do not wait for the disk`() throws {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        defer {
            backing.open()
            keyspace.close()
        }
        try keyspace.apply([.set("k", [1]), .set("other", [1])])
        backing.hold()
        keyspace.submit([.set("k", [2])]) { _ in }
        #expect(backing.held() != nil)
        #expect(keyspace.entry(for: "other")?.value == [1])
        #expect(keyspace.entry(for: "k")?.value == [1])
        #expect(keyspace.entries(.everything, after: nil, limit: 9).count == 2)
        // Nor do writes, up to their answer, or refusals that rest on what is durable.
        keyspace.submit([.set("third", [1])]) { _ in }
        let refusal = Observed<Result<Int64, StateError>?>(nil)
        keyspace.submit([.check("other", revision: 9)]) { answer in refusal.update { $0 = answer } }
        #expect(refusal.current != nil)
        #expect(backing.waiting?.count == 1, "a read waited until the commit had ended")
    }
}
