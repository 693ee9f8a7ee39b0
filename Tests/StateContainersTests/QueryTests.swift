import StateContainers
import StateTestSupport
import Testing

struct QueryTests {
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: MemoryBacking()) }

    @Test func `queries that always have more to show delay no listener`() throws {
        let isOver = Observed(false)
        let rounds = Observed(0)
        // One each, so that each tells its own.
        let keyspaces = try (0..<8).map { _ in try LocalKeyspace(backing: MemoryBacking()) }
        let queries = try keyspaces.map { keyspace in
            let query = StateQuery("q/", as: Int.self).filtered { [unowned keyspace] value in
                // There is always a newer row when this one is shown.
                rounds.update { $0 += 1 }
                let next = Mutation.set("q/n", Array("\(value + 1)".utf8))
                if !isOver.current { keyspace.submit([next]) { _ in } }
                return true
            }
            try keyspace.apply([.set("q/n", Array("0".utf8))])
            return try keyspace.query(query)
        }
        #expect(rounds.wait { $0 > 100 })
        let state = MonitoredState(0, key: "a")
        let told = Told<Int>()
        let observation = state.observe(told.take)
        state ~> 5
        #expect(told.rests { $0 == 5 })
        isOver.update { $0 = true }
        observation.cancel()
        for keyspace in keyspaces { keyspace.close() }
        withExtendedLifetime(queries) {}
    }

    @Test func `rows rest on what is stored, whoever writes, and name what cannot be read`() throws
    {
        let query = try keyspace.query("n/", as: Int.self)
        onThreads(4) { [keyspace] thread in
            for round in 0..<1_000 {
                let key = Key(verified: "n/\(round % 10)")
                let bytes = Array((round % 7 == 0 ? "none" : "\(thread)").utf8)
                let mutation: Mutation = round % 11 == 0 ? .delete(key) : .set(key, bytes)
                keyspace.submit([mutation]) { _ in }
            }
        }
        let stored = keyspace.entries("n/", after: nil, limit: 100)
        let readable = stored.filter { $0.entry.value != Array("none".utf8) }
        let isCurrent = eventually {
            query.rows.map(\.key) == readable.map(\.key)
                && query.rows.map(\.revision.number) == readable.map(\.entry.revision)
                && query.unreadable.count == stored.count - readable.count
        }
        #expect(isCurrent)
        keyspace.close()
    }
}
