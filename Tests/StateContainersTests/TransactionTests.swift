import StateContainers
import StateTestSupport
import Testing

struct TransactionTests {
    @Test func `a transaction over containers in memory is all or nothing`() throws {
        struct Refusal: Error {}
        let from = State(10, key: "from")
        let to = State("0", key: "to")
        try withTransaction { tx in
            tx[from] -= 3
            tx[to] = "\(10 - tx[from])"
        }
        #expect(from.value == 7)
        #expect(to.value == "3")
        #expect(throws: Refusal.self) {
            try withTransaction { tx in
                tx[from] = 0
                throw Refusal()
            }
        }
        #expect(from.value == 7)
    }

    @Test func `4 threads that move amounts between containers keep the sum`() throws {
        let accounts = try (0..<5).map { State(100, key: try Key("account/\($0)")) }
        moveAmounts(between: accounts, times: 1_000, sum: 500)
    }

    @Test func `a transaction over containers of a keyspace is one commit`() throws {
        let backing = HeldBacking(isHeld: false)
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let accounts = try (0..<3).map {
            try PersistentState(100, key: Key("account/\($0)"), in: keyspace, codec: digits)
        }
        let commits = backing.attemptCount
        try withTransaction { tx in
            tx[accounts[0]] -= 5
            tx[accounts[1]] += 5
            _ = tx[accounts[2]]
        }
        #expect(backing.attemptCount == commits + 1)
        #expect(accounts.map(\.value) == [95, 105, 100])
        #expect(
            accounts[0].versioned.revision == accounts[1].versioned.revision
        )
        moveAmounts(between: accounts, times: 200, sum: 300)
    }

    @Test func `a transaction of a task is the same`() async throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let first = try await PersistentState(0, key: "a", in: keyspace, codec: digits)
        let second = try await PersistentState(0, key: "b", in: keyspace, codec: digits)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<100 {
                        try? await withTransaction { tx in
                            tx[first] += 1
                            tx[second] -= 1
                        }
                    }
                }
            }
        }
        #expect(first.value == 400)
        #expect(second.value == -400)
    }

    @Test func `containers of several homes are refused before anything has changed`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let stored = try PersistentState(0, key: "a", in: keyspace, codec: digits)
        let inMemory = State(0, key: "b")
        let error = #expect(throws: StateError.self) {
            try withTransaction { tx in
                tx[stored] = 1
                tx[inMemory] = 1
            }
        }
        #expect(error?.code == .mixedKeyspaces)
        #expect(stored.value == 0)
        #expect(inMemory.value == 0)
    }

    @Test func `Atomic: a transaction over 1,000 containers is one step, over more refused`() throws
    {
        func check(_ states: [some StateContainer<Int, some Error>]) throws {
            try withTransaction { tx in for state in states.dropFirst() { tx[state] += 1 } }
            #expect(states.dropFirst().allSatisfy { $0.value == 1 })
            let error = #expect(throws: StateError.self) {
                try withTransaction { tx in for state in states { tx[state] += 1 } }
            }
            #expect(error?.code == .tooBig)
            #expect(states[1].value == 1)
        }
        let limit = StateTransaction.limit
        try check((0...limit).map { State(0, key: Key(verified: "a/\($0)")) })
        let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
        defer { keyspace.close() }
        try check(
            (0...limit).map {
                try PersistentState(0, key: Key("a/\($0)"), in: keyspace, codec: digits)
            }
        )
    }

    @Test func `a commit of others that changes 20,000 containers reaches each`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let states = try (0..<20_000).map {
            try PersistentState(0, key: Key("a/\($0)"), in: keyspace, codec: digits)
        }
        try keyspace.apply(states.map { .set($0.key, Array("8".utf8)) })
        #expect(states.allSatisfy { $0.value == 8 })
    }

    @Test func `a transaction that only reads, or names a container twice, is a transaction`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
        defer { keyspace.close() }
        let first = try PersistentState(1, key: "a", in: keyspace, codec: digits)
        let same = try PersistentState(1, key: "a", in: keyspace, codec: digits)
        let second = try PersistentState(2, key: "b", in: keyspace, codec: digits)
        #expect(try withTransaction { tx in tx[first] + tx[second] } == 3)
        try withTransaction { tx in
            tx[first] += 1
            tx[same] += 1
        }
        #expect(first.value == 3)
        #expect(try withTransaction { _ in 7 } == 7)
    }
}

/// Has 4 threads move amounts at random, each of which looks at the sum after each move.
private func moveAmounts<Failure>(
    between accounts: [StateContainer<Int, Failure>],
    times count: Int,
    sum total: Int
) {
    onThreads(4) { thread in
        var random = SplitMix(seed: UInt64(thread))
        for _ in 0..<count {
            let from = accounts[Int.random(in: accounts.indices, using: &random)]
            let to = accounts[Int.random(in: accounts.indices, using: &random)]
            try? withTransaction { tx in
                tx[from] -= 1
                tx[to] += 1
            }
            let sum = try? withTransaction { tx in accounts.reduce(0) { $0 + tx[$1] } }
            if sum != total { Issue.record("the sum is \(sum ?? 0)") }
        }
    }
    #expect(accounts.reduce(0) { $0 + $1.value } == total)
}
