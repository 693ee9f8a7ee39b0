import Glibc
import StateContainers
import StateTestSupport
import Testing

/// Decimal digits and nothing else.
let digits = StateCodec<Int> { (value) throws(StateError) in
    Array(String(value).utf8)
} decode: { (bytes) throws(StateError) in
    let text = String(decoding: bytes ?? [], as: UTF8.self)
    guard let value = Int(text) else {
        throw StateError(.undecodable, "expected an integer, found '\(text)'")
    }
    return value
}

struct PersistentStateTests {
    private let backing = HeldBacking(isHeld: false)
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: backing) }

    private func counter(
        _ key: Key = "demo/count",
        acceptsUnreadable: Bool = false
    ) throws(StateError) -> PersistentState<Int> {
        try PersistentState(
            0,
            key: key,
            in: keyspace,
            codec: digits,
            acceptsUnreadable: acceptsUnreadable
        )
    }

    @Test func `a change is stored when modify returns`() throws {
        let state = try counter()
        #expect(state.origin == .defaulted)
        let revision = try state.modify(5)
        #expect(state.value == 5)
        #expect(state.versioned.revision == revision)
        #expect(keyspace.entry(for: "demo/count")?.value == Array("5".utf8))
        #expect(keyspace.entry(for: "demo/count")?.revision == revision.number)
        #expect(state.origin == .stored)
        #expect(
            try state.modify {
                $0 += 1
                return "\($0)"
            } == "6"
        )
    }

    @Test func `containers of one key share the value`() throws {
        let first = try counter()
        let second = try counter()
        try first ~> 3
        #expect(second.value == 3)
        try second ~> { $0 += 1 }
        #expect(first.value == 4)
    }

    @Test func `a container of another type on a key is refused by name`() throws {
        let state = try counter()
        let error = #expect(throws: StateError.self) {
            try PersistentState(
                false,
                key: "demo/count",
                in: keyspace,
                codec: StateCodec { _ in
                    nil
                } decode: { _ in
                    true
                }
            )
        }
        #expect(error?.code == .typeMismatch)
        #expect(error?.message.contains("demo/count") ?? false)
        try state ~> 1
    }

    @Test
    func `Durable as asked: nobody sees a change before storage has it, and the next stands on it`()
        throws
    {
        let state = try counter()
        backing.hold()
        let writers = (0..<2).map { _ in WorkerThread(name: "writer") }
        for writer in writers { writer.start { try? state.modify { $0 += 1 } } }
        #expect(backing.held() != nil)
        #expect(state.value == 0)
        backing.open()
        for writer in writers { writer.join() }
        #expect(state.value == 2)
    }

    @Test func `Durable as asked: 8 threads of which the disk refuses some show no undone sum`()
        throws
    {
        let state = try counter()
        let disk = WorkerThread(name: "disk")
        backing.hold()
        let isDone = Observed(false)
        disk.start { [backing] in
            var random = SplitMix(seed: 7)
            while !isDone.current, backing.held() != nil {
                if random.chance(30) {
                    backing.fail(StateError(.noSpace, "the disk is full"))
                } else {
                    backing.release()
                }
            }
        }
        let seen = Observed<[Int]>([])
        let stored = Observed<Set<Int>>([])
        onThreads(8) { _ in
            for _ in 0..<100 {
                let result = try? state.modify { value -> Int in
                    value += 1
                    return value
                }
                let value = state.value
                seen.update { $0.append(value) }
                if let result { stored.update { _ = $0.insert(result) } }
            }
        }
        isDone.update { $0 = true }
        keyspace.submit([.set("last", [])]) { _ in }
        disk.join()
        #expect(stored.current.count == state.value)
        #expect(stored.current == Set(1...state.value))
        #expect(Set(seen.current).isSubset(of: stored.current.union([0])))
    }

    @Test func `what others write is seen, and counted on`() throws {
        let state = try counter()
        try keyspace.apply([.set("demo/count", Array("41".utf8))])
        #expect(state.value == 41)
        try state ~> { $0 += 1 }
        #expect(state.value == 42)
        try keyspace.apply([.delete("demo/count")])
        #expect(state.value == 0)
        #expect(state.origin == .defaulted)
        try state ~> { $0 += 1 }
        #expect(state.value == 1)
    }

    private func nextCount() -> Mutation {
        let entry = keyspace.entry(for: "demo/count")
        let count = entry.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
        return .set("demo/count", Array("\(count + 1)".utf8), ifRevision: entry?.revision ?? 0)
    }

    @Test func `a container and others that write its key lose nothing`() throws {
        let state = try counter()
        onThreads(4) { thread in
            for _ in 0..<100 {
                if thread < 2 {
                    try? state.modify { $0 += 1 }
                } else {
                    while (try? keyspace.apply([nextCount()])) == nil {}
                }
            }
        }
        #expect(state.value == 400)
    }

    @Test func `Never silent: what cannot be read stays, until it is replaced`() throws {
        let state = try counter()
        try state ~> 5
        try keyspace.apply([.set("demo/count", Array("five".utf8))])
        #expect(state.value == 5)
        guard case .undecodable(let error) = state.status else {
            Issue.record("the status is \(state.status)")
            return
        }
        #expect(error.message.contains("demo/count"))
        #expect(state.persistent.failure.value == error)
        #expect(throws: error) { try state.modify { $0 += 1 } }
        #expect(keyspace.entry(for: "demo/count")?.value == Array("five".utf8))
    }

    @Test func `a container on what cannot be read is refused, or holds the default`() throws {
        try keyspace.apply([.set("demo/count", Array("five".utf8))])
        #expect(throws: StateError.self) { try counter() }
        let state = try counter(acceptsUnreadable: true)
        #expect(state.value == 0)
        try state.replace(6)
        #expect(state.value == 6)
        #expect(state.status == .current)
        #expect(keyspace.entry(for: "demo/count")?.value == Array("6".utf8))
    }

    @Test
    func `a change that need not be stored is seen at once, and taken back where it cannot be`()
        throws
    {
        let state = try counter()
        try state ~> 1
        backing.hold()
        try state.modify(2, durability: .memory)
        #expect(state.value == 2)
        #expect(keyspace.entry(for: "demo/count")?.value == Array("1".utf8))
        let error = StateError(.noSpace, "the disk is full")
        backing.fail(error)
        #expect(state.persistent.failure.waits { $0 == error })
        #expect(state.value == 1)
        backing.open()
        try state ~> { $0 += 1 }
        #expect(state.value == 2)
    }

    @Test func `Visible: every container of a key has a change when modify returned and is told`()
        throws
    {
        let states = try (0..<4).map { _ in try counter() }
        let stale = Observed(0)
        let observations = states.map { state in
            state.observe { change in
                if states.contains(where: { $0.value < change.new }) { stale.update { $0 += 1 } }
            }
        }
        onThreads(4) { thread in
            for _ in 0..<1_000 {
                let mine = try? states[thread].modify { value in
                    value += 1
                    return value
                }
                guard let mine, states.allSatisfy({ $0.value >= mine }) else {
                    stale.update { $0 += 1 }
                    continue
                }
            }
        }
        #expect(states[0].value == 4_000)
        #expect(stale.current == 0)
        for observation in observations { observation.cancel() }
    }

    @Test func `Atomic: a body that fails changes nothing`() async throws {
        struct Refusal: Error {}
        let state = try counter()
        #expect(throws: Refusal.self) {
            try state.modify { value in
                value = 9
                throw Refusal()
            }
        }
        await #expect(throws: Refusal.self) {
            try await state.modify { value in
                value = 9
                throw Refusal()
            }
        }
        #expect(state.value == 0)
        try await state.modify(3)
        #expect(
            try await state.modify {
                $0 += 1
                return $0
            } == 4
        )
        try await state.flush()
    }

    @Test func `a value is replaced only at the revision that was read`() throws {
        let state = try counter()
        let absent = state.versioned.revision
        let first = try state.modify(1, ifRevision: absent)
        let error = #expect(throws: StateError.self) { try state.modify(2, ifRevision: absent) }
        #expect(error?.code == .conflict)
        try state.modify(2, ifRevision: first)
        #expect(state.value == 2)
    }
}

extension State {
    /// Waits until the value is as `condition` says, 20 seconds at most.
    func waits(until condition: (Value) -> Bool) -> Bool {
        eventually { condition(value) }
    }
}

/// A nil removes the entry, and without an entry the value is the default.
struct AbsentValueTests {
    @Test func `a default that a nil would become is refused, also by a static container`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let error = #expect(throws: StateError.self) {
            try PersistentState(Int?.some(5), key: "limit", in: keyspace)
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.hasPrefix("key 'limit': the default of an Optional must be") == true)
        let limit = PersistentState(Int?.some(5), key: "limit", in: StateStorage.inMemory())
        #expect(throws: StateError.self) { try limit.set(nil) }
        #expect(limit.value == 5)
        // What to use instead.
        let stored = try PersistentState(Int?.none, key: "limit", in: keyspace)
        let filled = stored.scope(or: 5)
        try stored.set(7)
        try stored.set(nil)
        #expect(filled.value == 5 && stored.value == nil)
    }

    @Test func `a value that a codec removes is refused if it would become another one`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let positive = StateCodec<Int> { (value) throws(StateError) in
            value > 0 ? Array("\(value)".utf8) : nil
        } decode: { (bytes) throws(StateError) in
            bytes.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
        }
        let five = try PersistentState(5, key: "five", in: keyspace, codec: positive)
        #expect(throws: StateError.self) { try five.set(0) }
        #expect(throws: StateError.self) { try withTransaction { $0[five] = 0 } }
        #expect(five.value == 5)
        let zero = try PersistentState(0, key: "zero", in: keyspace, codec: positive)
        try zero.set(1)
        try zero.set(0)
        #expect(zero.value == 0)
    }
}
