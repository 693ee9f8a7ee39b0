import StateContainers
import StateTestSupport
import Testing

struct QueryWindowTests {
    private struct Row: Codable, Hashable, Sendable {
        var group: Int
        var cents: Int
        var weight = 0.5
    }

    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: MemoryBacking()) }

    @Test func `a page shows the same rows as the whole, through random changes`() throws {
        let all = StateQuery("r/", as: Row.self).sorted(by: \.cents)
        let whole = try keyspace.query(all)
        let page = try keyspace.query(all.offset(10).limit(7))
        let sections = try keyspace.query(all.sectioned(by: \.group, .reverse))
        var random = SplitMix(seed: 9)
        for round in 0..<1_500 {
            let id = Key(verified: "r/\(Int.random(in: 0..<400, using: &random))")
            let row = Row(
                group: Int.random(in: 0..<5, using: &random),
                cents: Int.random(in: 0..<1_000, using: &random)
            )
            switch round % 4 {
            case 0: try whole.delete(id: id)
            case 1: try whole.update(id: id) { $0 = row }
            default: try? whole.insert(row, id: id)
            }
            guard round % 50 == 0 else { continue }
            let rows = Array(whole.rows)
            #expect(Array(page.rows) == Array(rows.dropFirst(10).prefix(7)))
            #expect((0..<page.rows.count).map { page.rows[$0] } == Array(page.rows))
            #expect(page.count == rows.count && whole.count == rows.count)
            #expect(whole.sum(of: \.cents) == rows.map(\.value.cents).reduce(0, +))
            #expect(whole.sum(of: \.weight) == Double(rows.count) / 2)
            let expected = Dictionary(grouping: rows) { $0.value.group }
            #expect(sections.sections.map(\.id) == expected.keys.sorted(by: >))
            for section in sections.sections {
                #expect(Array(section.rows) == expected[section.id])
            }
        }
    }

    @Test func `a change outside of a page calls nobody, one inside does`() throws {
        let query = try keyspace.query(StateQuery("r/", as: Int.self).sorted(by: \.self).limit(2))
        for number in 1...5 { try query.insert(number, id: Key("r/\(number)")) }
        _ = query.rows
        let told = Observed(0)
        let observation = query.observe(on: .notifier, initial: false) { _ in
            told.update { $0 += 1 }
        }
        try query.update(id: "r/5") { $0 = 50 }
        _ = query.rows
        try query.update(id: "r/1") { $0 = 0 }
        #expect(query.rows.map(\.value) == [0, 2])
        #expect(told.wait { $0 == 1 })
        withExtendedLifetime(observation) {}
    }

    @Test func `an empty page, an offset behind the end, no rows`() throws {
        let all = StateQuery("r/", as: Int.self)
        #expect(try keyspace.query(all.limit(0)).rows.isEmpty)
        let behind = try keyspace.query(all.offset(3))
        #expect(behind.rows.isEmpty && Array(behind.rows).isEmpty && behind.count == 0)
        #expect(try keyspace.query(all.sectioned(by: \.self)).sections.isEmpty)
        #expect(behind.sum(of: \.self) == 0)
        try behind.insert(1, id: "r/1")
        #expect(behind.rows.isEmpty && behind.count == 1)
    }

    @Test func `rows are inserted, changed and deleted by their ids`() async throws {
        let query = try await keyspace.query("r/", as: Row.self)
        try await query.insert(Row(group: 1, cents: 5), id: "r/a")
        await #expect(throws: StateError.self) {
            try await query.insert(Row(group: 2, cents: 6), id: "r/a")
        }
        let error = #expect(throws: StateError.self) {
            try query.insert(Row(group: 2, cents: 6), id: "other/a")
        }
        #expect(error?.code == .invalidRequest)
        #expect(
            try await query.update(id: "r/a") { row in
                row.cents += 1
                return row.cents
            } == 6
        )
        #expect(try await query.update(id: "r/b") { $0.cents } == nil)
        #expect(query.rows.map(\.value.cents) == [6])
        #expect(try await query.delete(id: "r/a"))
        #expect(try await !query.delete(id: "r/a"))
        #expect(query.rows.isEmpty)
    }

    @Test func `Atomic: 4 threads that change a row lose nothing`() throws {
        let query = try keyspace.query("r/", as: Int.self)
        try query.insert(0, id: "r/a")
        onThreads(4) { _ in
            for _ in 0..<250 { _ = try? query.update(id: "r/a") { $0 += 1 } }
        }
        #expect(query.rows.first?.value == 1_000)
    }

    @Test func `a row that cannot be read is not changed, and an invalid one not stored`() throws {
        struct Small: Validatable, Codable, Sendable { @Max(5) var number = 0 }
        try keyspace.apply([.set("r/a", Array("none".utf8))])
        let query = try keyspace.query("r/", as: Small.self)
        let error = #expect(throws: StateError.self) {
            try query.update(id: "r/a") { $0.number = 1 }
        }
        #expect(error?.code == .undecodable)
        #expect(keyspace.entry(for: "r/a")?.value == Array("none".utf8))
        var large = Small()
        large.number = 6
        let refused = #expect(throws: StateError.self) { try query.insert(large, id: "r/b") }
        #expect(refused?.code == .rejected)
        #expect(query.count == 0)
    }
}
