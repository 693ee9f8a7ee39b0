import StateContainers
import StateEngine

/// The time until a query of 100,000 entries shows 20 of them: as a page of the keys, and sorted.
enum PageRows {
    private static let entryCount = 100_000

    private struct Item: Codable, Sendable {
        var name = "an item"
        var cents = 0
    }

    static func measure(_ table: inout LibraryTable) throws(BenchError) {
        do {
            let keyspace = try LocalKeyspace(backing: MemoryBacking())
            defer { keyspace.close() }
            try fill(keyspace)
            let all = StateQuery("item/", as: Item.self)
            let sorted = "LiveQuery, 20 of 100,000 rows, sorted"
            table.add(sorted, try open(all.sorted(by: \.cents).limit(20), in: keyspace))
            table.add(
                "LiveQuery, 20 of 100,000 rows, by key",
                try open(all.limit(20), in: keyspace),
                beside: sorted,
                atMost: 0.1
            )
        } catch {
            throw .failed("\(error)")
        }
    }

    private static func fill(_ keyspace: LocalKeyspace) throws {
        for start in stride(from: 0, to: entryCount, by: 1_000) {
            let mutations = try (start..<start + 1_000).map { number -> Mutation in
                let bytes = try StateCodec<Item>.standard.encode(Item(cents: number)) ?? []
                return .set(try Key("item/\(entryCount + number)"), bytes)
            }
            try keyspace.apply(mutations)
        }
    }

    private static func open(
        _ query: StateQuery<Item>,
        in keyspace: LocalKeyspace
    ) throws -> Double {
        try nanoseconds(1) { _ in
            let live = try keyspace.query(query)
            guard live.rows.count == 20 else {
                throw BenchError.failed("a query shows \(live.rows.count) rows, not 20")
            }
        }
    }
}
