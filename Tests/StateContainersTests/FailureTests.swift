import StateContainers
import StateTestSupport
import Testing

/// What containers show and say when storage fails.
struct FailureTests {
    private let backing = HeldBacking(isHeld: false)
    private let keyspace: LocalKeyspace
    private let state: PersistentState<Int>
    private let full = StateError(.noSpace, "the disk is full")

    init() throws {
        keyspace = try LocalKeyspace(backing: backing)
        state = try PersistentState(0, key: "k", in: keyspace, codec: digits)
        try state.modify(1)
    }

    /// Has so many changes in memory refused by storage.
    private func loseEarly(_ count: Int = 1, with error: StateError, isKept: Bool = false) throws {
        backing.hold()
        for _ in 0..<count { try state.modify(durability: .memory) { $0 += 1 } }
        #expect(state.value == 1 + count)
        backing.fail(error, isKept: isKept)
        #expect(state.persistent.failure.waits { $0 == error })
    }

    @Test func `Convergent: a change that was taken back and is stored after all is shown again`()
        throws
    {
        backing.holdReopening()
        try loseEarly(
            with: StateError(.readOnly, "outcome unknown: the sync failed"),
            isKept: true
        )
        #expect(state.value == 1)
        backing.openAgain()
        #expect(state.waits { $0 == 2 })
        backing.open()
        #expect(keyspace.entry(for: "k")?.value == Array("2".utf8))
        try state.modify(2, ifRevision: state.versioned.revision)
    }

    @Test func `several changes that are taken back are told as one`() throws {
        let told = Told<Int>()
        let observation = state.observe(on: .inline, initial: false, told.take)
        try loseEarly(3, with: full)
        #expect(told.rests { $0 == 1 })
        backing.open()
        try state.modify(9)
        #expect(told.rests { $0 == 9 })
        #expect(told.changes.current.map(\.new) == [2, 3, 4, 1, 9])
        observation.cancel()
    }

    @Test func `after a change was taken back the revision that is read can be replaced`() throws {
        try loseEarly(with: full)
        backing.open()
        let (value, revision) = state.versioned
        #expect(value == 1)
        try state.modify(5, ifRevision: revision)
        #expect(state.value == 5)
    }

    @Test func `Never silent: a failure is told though the next change succeeds`() async throws {
        var failures = state.failures.makeAsyncIterator()
        try loseEarly(with: full)
        backing.open()
        try await state.modify(3)
        #expect(state.persistent.failure.value == nil)
        #expect(await failures.next() == full)
    }

    @Test func `Bounded: 1,024 changes wait for storage, then modify waits`() throws {
        backing.hold()
        for _ in 0..<1_024 { try state.modify(durability: .memory) { $0 += 1 } }
        #expect(state.value == 1_025)
        let isDone = Observed(false)
        let writer = WorkerThread(name: "test-writer")
        writer.start { [state] in
            try? state.modify(durability: .memory) { $0 += 1 }
            isDone.update { $0 = true }
        }
        #expect(!isDone.wait(seconds: 1) { $0 })
        backing.open()
        #expect(isDone.wait { $0 })
        writer.join()
        #expect(state.value == 1_026)
    }

    @Test func `to remove what is absent changes nothing, and says at which revision`() throws {
        let codec = StateCodec<Int?> { (value) throws(StateError) in
            value.map { Array(String($0).utf8) }
        } decode: { (bytes) throws(StateError) in
            bytes.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        }
        let rating = try PersistentState<Int?>(nil, key: "rating", in: keyspace, codec: codec)
        try state.modify(2)
        let absent = try rating.modify(nil)
        #expect(absent == rating.versioned.revision)
        let present = try rating.modify(5, ifRevision: absent)
        #expect(rating.versioned == (5, present))
        let removed = try rating.modify(nil, ifRevision: present)
        #expect(rating.origin == .defaulted)
        try state.modify(3)
        #expect(try rating.modify(nil) == removed)
        try rating.modify(6, ifRevision: removed)
        #expect(keyspace.entry(for: "rating")?.value == Array("6".utf8))
    }

    @Test func `what cannot be read and becomes something else that cannot is told anew`() throws {
        try keyspace.apply([.set("k", Array("one".utf8))])
        let first = state.status
        try keyspace.apply([.set("k", Array("two".utf8))])
        #expect(state.status != first)
        guard case .undecodable(let error) = state.status else {
            Issue.record("the status is \(state.status)")
            return
        }
        #expect(error.message.contains("two"))
        #expect(state.persistent.failure.value == error)
        #expect(state.value == 1)
        #expect(throws: error) {
            try withTransaction { tx in tx[state] += 1 }
        }
        #expect(keyspace.entry(for: "k")?.value == Array("two".utf8))
        try keyspace.apply([.delete("k")])
        #expect(state.status == .current)
        #expect(state.value == 0)
    }

    @Test func `a keyspace that was closed refuses, and nothing hangs`() async throws {
        let started = ContinuousClock.now
        keyspace.close()
        #expect(state.value == 1)
        let error = #expect(throws: StateError.self) { try state.modify(2) }
        #expect(error?.code == .readOnly)
        #expect(throws: StateError.self) { try state.modify(2, durability: .memory) }
        #expect(throws: StateError.self) { try withTransaction { tx in tx[state] = 2 } }
        await #expect(throws: StateError.self) { try await state.modify(2) }
        try await state.flush()
        let late = try await PersistentState(0, key: "late", in: keyspace, codec: digits)
        #expect(throws: StateError.self) { try late.modify(2) }
        #expect(state.value == 1)
        #expect(ContinuousClock.now - started < .seconds(10))
        keyspace.close()
    }

    @Test func `a body that runs again for ever ends with an error that names the key`() throws {
        let deaf = DeafKeyspace(keyspace)
        let stale = try PersistentState(0, key: "k", in: deaf, codec: digits)
        try keyspace.apply([.set("k", Array("8".utf8))])
        let error = #expect(throws: StateError.self) { try stale.modify { $0 += 1 } }
        #expect(error?.code == .conflict)
        #expect(error?.message.contains("'k'") ?? false)
        let other = #expect(throws: StateError.self) { try withTransaction { $0[stale] += 1 } }
        #expect(other?.code == .conflict)
        #expect(keyspace.entry(for: "k")?.value == Array("8".utf8))
    }
}

/// A keyspace that tells states, and never a commit.
private final class DeafKeyspace: Keyspace {
    private let keyspace: LocalKeyspace

    init(_ keyspace: LocalKeyspace) { self.keyspace = keyspace }

    var epoch: Epoch { keyspace.epoch }

    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? { keyspace.submit(mutations, completion: completion) }

    func entry(for key: Key) -> Entry? { keyspace.entry(for: key) }

    func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) -> [(
        key: Key, entry: Entry
    )] { keyspace.entries(pattern, after: key, limit: limit) }

    func watch(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) -> any KeyspaceWatch {
        keyspace.watch { event in if case .state = event { receive(event) } }
    }
}
