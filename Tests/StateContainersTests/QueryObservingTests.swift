import StateContainers
import StateTestSupport
import Testing

/// What observes a query, or streams it: where it is called, and for how long.
struct QueryObservingTests {
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: MemoryBacking()) }

    private func set(_ key: Key, _ number: Int) throws {
        try keyspace.apply([.set(key, Array("\(number)".utf8))])
    }

    @Test func `an observation keeps its query running, until it is cancelled`() throws {
        final class Probe: Sendable {}
        var probe: Probe? = Probe()
        weak let kept = probe
        let told = Told<QueryRows<Int>>()
        let all = StateQuery("n/", as: Int.self).filtered { [probe] _ in probe != nil }
        probe = nil
        let observation = try keyspace.query(consume all).observe(told.take)
        try set("n/a", 1)
        #expect(told.rests { $0.map(\.value) == [1] })
        observation.cancel()
        #expect(eventually { kept == nil })
    }

    // Longer than all tests take: each await goes on behind those that wait for a thread.
    @Test(.timeLimit(.minutes(15)))
    func `a stream of a query that nobody else keeps goes on`() async throws {
        var values = try await keyspace.query("n/", as: Int.self).values.makeAsyncIterator()
        #expect(await values.next()?.count == 0)
        for number in 1...3 {
            try await keyspace.apply([.set("n/a", Array("\(number)".utf8))])
            #expect(await values.next()?.map(\.value) == [number])
        }
    }

    @Test func `an observation of sections keeps them running`() throws {
        let counts = Observed<[Int]>([])
        let byParity = StateQuery("n/", as: Int.self).sectioned(by: \.parity)
        let observation = try keyspace.query(byParity).observe { sections in
            counts.update { $0 = sections.map(\.rows.count) }
        }
        try set("n/a", 1)
        try set("n/b", 2)
        try set("n/c", 3)
        #expect(counts.wait { $0 == [1, 2] })
        withExtendedLifetime(observation) {}
    }

    @Test(.timeLimit(.minutes(15)))
    func `a stream of failures keeps its value followed`() async throws {
        var failures = try await PersistentState(0, key: "n/a", in: keyspace).failures
            .makeAsyncIterator()
        let next = Task { await failures.next() }
        try await keyspace.apply([.set("n/a", Array("none".utf8))])
        #expect(await next.value?.code == .undecodable)
    }

    @Test func `a closure on an actor observes a query and its sections there`() async throws {
        let seen = Observed(0)
        let keyspace = keyspace
        let observations = try await Task { @MainActor in
            let query = try await keyspace.query("n/", as: Int.self)
            let sections = try await keyspace.query(
                StateQuery("n/", as: Int.self).sectioned(by: \.parity)
            )
            return [
                query.observe { _ in
                    MainActor.assertIsolated()
                    seen.update { $0 += 1 }
                },
                sections.observe { _ in
                    MainActor.assertIsolated()
                    seen.update { $0 += 1 }
                },
            ]
        }.value
        #expect(await elsewhere { seen.wait { $0 == 2 } })
        let mine = try await Place().follow(keyspace, seen)
        #expect(await elsewhere { seen.wait { $0 == 3 } })
        withExtendedLifetime((observations, mine)) {}
    }

    private actor Place {
        func follow(
            _ keyspace: LocalKeyspace,
            _ seen: Observed<Int>
        ) async throws -> StateObservation {
            try await keyspace.query("n/", as: Int.self).observe { _ in
                self.assertIsolated()
                seen.update { $0 += 1 }
            }
        }
    }

    @Test(arguments: [true, false])
    func `an inline observer of a query has been called when a write returns`(
        isStored: Bool
    ) throws {
        let keyspace =
            try isStored ? LocalKeyspace(backing: HeldBacking(isHeld: false)) : self.keyspace
        let query = try keyspace.query("n/", as: Int.self)
        let sections = try keyspace.query(
            StateQuery("n/", as: Int.self).sectioned(by: \.parity)
        )
        let (rows, counts) = (Observed<[Int]>([]), Observed<[Int]>([]))
        let observations = [
            query.observe(on: .inline) { change in rows.update { $0 = change.new.map(\.value) } },
            sections.observe(on: .inline) { all in
                counts.update { $0 = all.map(\.rows.count) }
            },
        ]
        for number in 1...200 {
            try keyspace.apply([.set(Key("n/\(number % 2)"), Array("\(number)".utf8))])
            #expect(rows.current.contains(number))
            if number > 1 { #expect(counts.current == [1, 1]) }
        }
        withExtendedLifetime(observations) {}
    }

    @Test func `an inline observer misses nothing while 4 threads read the rows`() throws {
        let query = try keyspace.query("n/", as: Int.self)
        let (last, late, isOver) = (Observed(0), Observed(0), Observed(false))
        let observation = query.observe(on: .inline) { change in
            last.update { $0 = change.new.first?.value ?? 0 }
        }
        onThreads(5) { [keyspace] thread in
            guard thread == 0 else {
                while !isOver.current { _ = query.rows.count }
                return
            }
            for number in 1...2_000 {
                _ = try? keyspace.apply([.set("n/a", Array("\(number)".utf8))])
                if last.current != number { late.update { $0 += 1 } }
            }
            isOver.update { $0 = true }
        }
        #expect(late.current == 0)
        withExtendedLifetime(observation) {}
    }

    @Test func `a row that breaks the rules of its type is unreadable, until it keeps them`() throws
    {
        struct Small: Validatable, Codable, Sendable { @Max(5) var number = 0 }
        try keyspace.apply([.set("n/a", Array(#"{"number":6}"#.utf8))])
        let query = try keyspace.query("n/", as: Small.self)
        #expect(query.rows.isEmpty)
        #expect(query.unreadable["n/a"]?.code == .rejected)
        #expect(try query.update(id: "n/a") { $0.number = 4 } != nil)
        #expect(query.rows.map(\.value.number) == [4])
        #expect(query.unreadable.isEmpty)
    }

    @Test func `what becomes unreadable without ever having had a row is reported`() throws {
        let query = try keyspace.query("n/", as: Int.self)
        let told = Told<QueryRows<Int>>()
        let observation = query.observe(initial: false, told.take)
        try keyspace.apply([.set("n/a", Array("none".utf8))])
        #expect(told.rests { $0.isEmpty })
        withExtendedLifetime(observation) {}
    }
}

extension Int {
    fileprivate var parity: Int { self % 2 }
}
