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
            let query = StateQuery("q/", as: Int.self).filtered { [weak keyspace] value in
                // There is always a newer row when this one is shown.
                rounds.update { $0 += 1 }
                let next = Mutation.set("q/n", Array("\(value + 1)".utf8))
                if !isOver.current { keyspace?.submit([next]) { _ in } }
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

    @Test func `Visible: each of 4 threads finds in the rows what it has written`() throws {
        let query = try keyspace.query("n/", as: Int.self)
        let missing = Observed(0)
        onThreads(4) { [keyspace] thread in
            let state = try? PersistentState(0, key: Key(verified: "n/\(thread)"), in: keyspace)
            for number in 1...500 {
                _ = try? state?.modify(number)
                let row = query.rows.first { $0.key == state?.key }
                if row?.value != number { missing.update { $0 += 1 } }
            }
        }
        #expect(missing.current == 0)
        #expect(query.rows.map(\.value) == [500, 500, 500, 500])
    }

    @Test func `a scope does not hide the rows`() throws {
        try keyspace.apply([.set("n/1", Array("1".utf8))])
        let query = try keyspace.query("n/", as: Int.self)
        #expect(StateScope.run { query.rows.count } == 1)
    }

    /// A value that counts how often it is compared.
    private struct Counted: Codable, Comparable, Sendable {
        static let comparisons = Observed(0)
        var number: Int

        static func < (left: Counted, right: Counted) -> Bool {
            comparisons.update { $0 += 1 }
            return left.number < right.number
        }
    }

    @Test func `one change among 20,000 rows compares it with few`() throws {
        let count = 20_000
        let coder = StateCodec<Counted>.standard
        let all = try (0..<count).map { number in
            Mutation.set(
                Key(verified: "n/\(number)"),
                try coder.encode(Counted(number: number * 2)) ?? []
            )
        }
        for start in stride(from: 0, to: count, by: 1_000) {
            try keyspace.apply(Array(all[start..<start + 1_000]))
        }
        let query = try keyspace.query(
            StateQuery("n/", as: Counted.self).sorted(by: \.self)
        )
        #expect(query.rows.count == count)
        Counted.comparisons.update { $0 = 0 }
        let moved = try coder.encode(Counted(number: 20_001)) ?? []
        try keyspace.apply([.set("n/3", moved)])
        #expect(query.rows[10_000].key == "n/3")
        #expect(Counted.comparisons.current < 200)
    }

    @Test func `rows stay in order through 4,000 random changes`() throws {
        let query = try keyspace.query(
            StateQuery("n/", as: Int.self).sorted(by: \.self).filtered { $0 % 5 != 0 }
        )
        var model: [Key: Int] = [:]
        var random = SplitMix(seed: 5)
        let before = query.rows
        for round in 0..<4_000 {
            let key = Key(verified: "n/\(Int.random(in: 0..<900, using: &random))")
            let value = Int.random(in: 0..<300, using: &random)
            let isDelete = random.next() % 4 == 0
            model[key] = isDelete ? nil : value
            try keyspace.apply([isDelete ? .delete(key) : .set(key, Array("\(value)".utf8))])
            guard round % 100 == 99 else { continue }
            let expected = model.filter { $0.value % 5 != 0 }
                .sorted { ($0.value, $0.key) < ($1.value, $1.key) }
            let rows = query.rows
            #expect(rows.map(\.key) == expected.map(\.key))
            #expect(rows.indices.map { rows[$0].value } == expected.map(\.value))
        }
        #expect(before.isEmpty)
    }

    @Test func `numbers that are not a number lose no row`() throws {
        let codec = StateCodec<Double> { (value) throws(StateError) in
            Array("\(value)".utf8)
        } decode: { (bytes) throws(StateError) in
            Double(String(decoding: bytes ?? [], as: UTF8.self)) ?? 0
        }
        let query = try keyspace.query(
            StateQuery("n/", as: Double.self, codec: codec).sorted(by: \.self)
        )
        for round in 0..<400 {
            let text = round % 3 == 0 ? "nan" : "\(round * 7 % 100)"
            try keyspace.apply([.set(Key(verified: "n/\(round % 150)"), Array(text.utf8))])
        }
        #expect(Set(query.rows.map(\.key)).count == 150 && query.rows.count == 150)
    }
}
