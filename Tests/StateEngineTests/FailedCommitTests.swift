import StateEngine
import StateTestSupport
import Testing

@Suite struct FailedCommitTests {
    private let stage: Stage

    init() throws { stage = try Stage() }

    @Test func `a failed commit leaves everything as it was`() throws {
        try stage.set("changed", "1")
        try stage.set("deleted", "1")
        try stage.set("gone", "1")
        try stage.delete("gone")
        try stage.commit()
        let before = stage.keyspace.entries(.everything, after: nil, limit: .max).map(\.entry)

        try stage.set("changed", "2")
        try stage.delete("deleted")
        try stage.set("gone", "2")
        try stage.set("new", "1")
        try stage.publish()
        try stage.fail()
        #expect(stage.newest() == ["changed": "1", "deleted": "1"])
        #expect(stage.durable() == stage.newest())
        #expect(stage.keyspace.entries(.everything, after: nil, limit: .max).map(\.entry) == before)
        #expect(stage.keyspace.keyCount == 2)
        #expect(stage.withCore { $0.pending.byteCount } == 0)
        #expect(stage.faults() == [])
    }

    @Test func `what was computed on a failed commit is undone with it`() throws {
        try stage.set("k", "a")
        try stage.commit()
        try stage.set("k", "b")
        try stage.publish()
        // Queued behind it, and not even handed over.
        try stage.transact { (core) throws(StateError) in try core.append("k", "c") }
        try stage.delete("k")
        try stage.publish()
        try stage.set("k", "d")
        try stage.set("other", "x")
        #expect(stage.newest() == ["k": "d", "other": "x"])
        try stage.fail()
        #expect(stage.newest() == ["k": "a"])
        #expect(stage.faults() == [])
        guard case .failed(from: 2, let error) = stage.outcomes.last else {
            Issue.record("\(stage.outcomes)")
            return
        }
        #expect(error.code == .noSpace)
    }

    @Test func `what was committed before the failure stays`() throws {
        try stage.set("k", "a")
        try stage.publish()
        try stage.delete("k")
        try stage.set("k", "b")
        try stage.publish()
        try stage.succeed()
        try stage.publish()
        try stage.fail()
        #expect(stage.newest() == ["k": "a"])
        #expect(stage.keyspace.keyCount == 1)
        #expect(stage.faults() == [])
    }

    @Test func `a new entry on a delete that was committed meanwhile is undone to nothing`() throws
    {
        try stage.set("k", "a")
        try stage.commit()
        try stage.delete("k")
        try stage.publish()
        try stage.set("k", "b")
        try stage.publish()
        try stage.succeed()
        #expect(stage.durable() == [:])
        try stage.publish()
        try stage.fail()
        #expect(stage.newest() == [:])
        #expect(stage.faults() == [])
        // The next version still knows the delete that it supersedes.
        try stage.set("k", "c")
        let change = try #require(try stage.publish().first)
        #expect(change.previousRevision == 2)
    }

    @Test func `revisions of failed commits are never used again`() throws {
        #expect(try stage.set("k", "a") == 1)
        try stage.publish()
        #expect(try stage.set("k", "b") == 2)
        try stage.fail()
        #expect(try stage.set("k", "c") == 3)
        try stage.publish()
        try stage.fail()
        #expect(try stage.set("k", "d") == 4)
        try stage.commit()
        #expect(stage.backing.kept.map(\.revision) == [4])
        #expect(stage.keyspace.revision == 4)
    }

    @Test func `after a failure new writes are committed`() throws {
        try stage.set("k", "a")
        try stage.publish()
        try stage.fail()
        try stage.set("k", "b")
        try stage.commit()
        #expect(stage.durable() == ["k": "b"])
    }

    @Test func `an error of another kind is an unknown outcome`() throws {
        struct Unexpected: Error {}
        final class Broken: Backing {
            let isPersistent = true
            func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore {
                LoadedStore(epoch: .random(), revision: 0)
            }
            func commit(_ batch: borrowing CommitBatch) throws { throw Unexpected() }
            func reopen(
                after: Int64,
                _ receive: (borrowing StoredChange) -> Void
            ) -> [String: String?] { [:] }
            func close() {}
        }
        let keyspace = try LocalKeyspace(backing: Broken())
        defer { keyspace.close() }
        let error = #expect(throws: StateError.self) { try keyspace.apply([.set("k", [])]) }
        #expect(error?.code == .readOnly)
        #expect(error?.message.hasPrefix("outcome unknown") == true)
        #expect(keyspace.entry(for: "k") == nil)
    }

    @Test func `a keyspace whose last commit fails unsettled can be closed`() throws {
        let backing = HeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        let answers = Observed<[Result<Int64, StateError>]>([])
        keyspace.settleElsewhere {}
        keyspace.submit([.set("k", [1])]) { answer in answers.update { $0.append(answer) } }
        #expect(backing.held() != nil)
        keyspace.submit([.set("k", [2])]) { answer in answers.update { $0.append(answer) } }
        let isClosed = Observed(false)
        let closer = WorkerThread(name: "closer")
        closer.start {
            keyspace.close()
            isClosed.update { $0 = true }
        }
        backing.fail(StateError(.noSpace, "the disk is full"))
        #expect(isClosed.wait { $0 }, "close waits for ever")
        #expect(answers.current.count == 2)
        #expect(
            answers.current.allSatisfy { $0 == .failure(StateError(.noSpace, "the disk is full")) }
        )
        #expect(backing.isClosed)
    }

    @Test func `a keyspace that nobody holds any more still answers what it was asked`() throws {
        let backing = HeldBacking()
        let answers = Observed<[Result<Int64, StateError>]>([])
        let isSubmitted = Observed(false)
        let owner = WorkerThread(name: "owner")
        owner.start {
            guard let keyspace = try? LocalKeyspace(backing: backing) else { return }
            let value = Array(repeating: UInt8(ascii: "v"), count: 4_096)
            for _ in 0..<2 {
                keyspace.submit([.set("k", value)]) { answer in answers.update { $0.append(answer) }
                }
            }
            isSubmitted.update { $0 = true }
        }
        #expect(isSubmitted.wait { $0 } && backing.held() != nil)
        backing.open()
        #expect(answers.wait { $0.count == 2 }, "no answer came")
        owner.join()
        #expect(backing.isClosed)
        #expect(answers.current == [.success(1), .success(2)])
        #expect(
            backing.kept.allSatisfy { $0.value?.allSatisfy { $0 == UInt8(ascii: "v") } == true }
        )
    }

    @Test func `a refusal that stands on a durable commit is not the failure of a later one`()
        throws
    {
        let backing = HeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let answers = Observed<[String: Result<Int64, StateError>]>([:])
        func submit(_ name: String, _ mutation: Mutation) {
            keyspace.submit([mutation]) { answer in answers.update { $0[name] = answer } }
        }
        submit("first", .set("a", [1]))
        #expect(backing.held() != nil)
        submit("second", .set("b", [1]))
        // Stands on the first, asked for after the second.
        submit("refused", .set("a", [2], ifRevision: 0))
        submit("checked", .check("a", revision: 1))
        backing.release()
        #expect(answers.wait { $0["first"] != nil && $0["refused"] != nil && $0["checked"] != nil })
        backing.fail(StateError(.noSpace, "the disk is full"))
        #expect(answers.wait { $0["second"] != nil })
        let answer = answers.current
        #expect(answer["first"] == .success(1))
        #expect(answer["checked"] == .success(1))
        #expect(answer["refused"] == .failure(StateError(.conflict, "key 'a' is at revision 1")))
        #expect(answer["second"] == .failure(StateError(.noSpace, "the disk is full")))
    }
}
