import Glibc
import StateContainers
import StateTestSupport
import Testing

private struct Budget: Codable, Hashable, Sendable {
    var name: String
    var amount: Int
    var dateCreated: Int

    static let all = StateQuery("budget/", as: Budget.self).sorted(by: \.dateCreated, .reverse)
}

struct LiveQueryTests {
    private let backing = HeldBacking(isHeld: false)
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: backing) }

    private func store(_ budget: Budget, as key: Key) throws {
        let bytes = try StateCodec<Budget>.standard.encode(budget) ?? []
        try keyspace.apply([.set(key, bytes)])
    }

    @Test func `a query fetches in its order and keeps current`() throws {
        try store(Budget(name: "food", amount: 10, dateCreated: 1), as: "budget/a")
        try store(Budget(name: "rent", amount: 20, dateCreated: 3), as: "budget/b")
        try store(Budget(name: "other", amount: 1, dateCreated: 9), as: "budgets")
        let query = try keyspace.query(Budget.all)
        #expect(query.rows.map(\.value.name) == ["rent", "food"])

        let trip = try PersistentState(
            Budget(name: "", amount: 0, dateCreated: 0),
            key: "budget/c",
            in: keyspace
        )
        try trip ~> Budget(name: "trip", amount: 5, dateCreated: 2)
        #expect(query.rows.map(\.value.name) == ["rent", "trip", "food"])
        try trip ~> { $0.dateCreated = 4 }
        #expect(query.rows.map(\.value.name) == ["trip", "rent", "food"])
        #expect(query.rows[0].revision == trip.versioned.revision)
        try keyspace.apply([.delete("budget/b")])
        #expect(query.rows.map(\.key) == ["budget/c", "budget/a"])
    }

    @Test func `equal fields are told apart by the order before, and last by their keys`() throws {
        for (number, name) in ["b", "a", "b", "a"].enumerated() {
            let key = try Key("budget/\(number)")
            try store(Budget(name: name, amount: number, dateCreated: 0), as: key)
        }
        let byName = try keyspace.query(
            StateQuery("budget/", as: Budget.self).sorted(by: \.amount, .reverse).sorted(by: \.name)
        )
        #expect(byName.rows.map(\.value.amount) == [3, 1, 2, 0])
        let few = try keyspace.query(
            StateQuery("budget/", as: Budget.self).filtered { $0.name == "a" }
                .filtered { $0.amount > 1 }
        )
        #expect(few.rows.map(\.value.amount) == [3])
    }

    @Test func `what cannot be read is named and in no row, until it can be`() throws {
        try keyspace.apply([.set("budget/a", Array("nothing".utf8))])
        let query = try keyspace.query(Budget.all)
        #expect(query.rows.isEmpty)
        #expect(query.unreadable["budget/a"]?.code == .undecodable)
        try store(Budget(name: "food", amount: 1, dateCreated: 1), as: "budget/a")
        #expect(query.rows.count == 1)
        #expect(query.unreadable.isEmpty)
        try keyspace.apply([.set("budget/a", Array("nothing".utf8))])
        #expect(query.unreadable.count == 1 && query.rows.isEmpty)
    }

    @Test func `Atomic: what a query shows is whole commits, under 4 writers`() throws {
        let query = try keyspace.query("pair/", as: Int.self)
        let torn = Observed(0)
        let observation = query.observe(on: .notifier) { change in
            let rows = change.new.map(\.value)
            if Set(rows).count > 1 || !(rows.isEmpty || rows.count == 3) { torn.update { $0 += 1 } }
        }
        let keys: [Key] = ["pair/a", "pair/b", "pair/c"]
        onThreads(4) { thread in
            for number in 0..<250 {
                let bytes = Array("\(thread * 1_000 + number)".utf8)
                _ = try? keyspace.apply(keys.map { .set($0, bytes) })
            }
        }
        let last = keyspace.entry(for: "pair/a")?.value ?? []
        #expect(query.rows.map(\.value) == Array(repeating: Int(text(last)) ?? -1, count: 3))
        #expect(torn.current == 0)
        withExtendedLifetime(observation) {}
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
