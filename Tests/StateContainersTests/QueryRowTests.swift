import Observation
import StateContainers
import StateTestSupport
import Testing

/// Rows that are read, shown and edited by their keys.
struct QueryRowTests {
    private struct Account: Validatable, Codable, Hashable, Sendable {
        @Min(0) var age = 3
        var name = "Ada"
    }

    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: MemoryBacking()) }

    private static let all = StateQuery("a/", as: Account.self)

    /// Queries whose limit leaves out the second row, and one without a limit.
    private static let queries = [all, all.limit(1), all.sorted(by: \.name).limit(1)]

    private func opened(_ query: StateQuery<Account>) throws -> LiveQuery<Account> {
        let live = try keyspace.query(query)
        try live.insert(Account(), id: "a/1")
        try live.insert(Account(), id: "a/2")
        return live
    }

    @Test(arguments: 0...2)
    func `a row is read by its key, also outside of the limit`(number: Int) throws {
        let query = try opened(Self.queries[number])
        #expect(query["a/2"]?.value == Account() && query["a/3"] == nil && query["b"] == nil)
        #expect(query["a/2"]?.revision.number == keyspace.entry(for: "a/2")?.revision)
        let told = Observed(false)
        withObservationTracking {
            _ = query["a/2"]
        } onChange: {
            told.update { $0 = true }
        }
        try query.update(id: "a/2") { $0.age = 4 }
        #expect(told.wait { $0 })
        #expect(query["a/2"]?.value.age == 4)
    }

    @Test(arguments: 0...2)
    func `a binding changes a part of a row, keeps what refused it, and outlives the row`(
        number: Int
    ) throws {
        let query = try opened(Self.queries[number])
        #expect(query.binding(id: "a/3") == nil)
        let row = try #require(query.binding(id: "a/2"))
        row.age.wrappedValue = 5
        #expect(row.wrappedValue.age == 5 && row.refusal == nil)
        row.age.wrappedValue = -1
        #expect(row.wrappedValue.age == 5 && row.refusal?.code == .rejected)
        try query.delete(id: "a/2")
        row.name.wrappedValue = "Grace"
        #expect(row.wrappedValue.name == "Ada" && row.refusal?.code == .conflict)
        #expect(query["a/2"] == nil)
    }

    @Test(arguments: 0...2)
    func `a draft of a row is committed if nobody has changed the row`(number: Int) throws {
        let query = try opened(Self.queries[number])
        #expect(query.draft(id: "a/3") == nil)
        var draft = try #require(query.draft(id: "a/2"))
        draft.age = -1
        #expect(throws: StateError.self) { try draft.commit() }
        draft.age = 6
        try draft.commit()
        // The same value once more: the draft is based on its own commit.
        try draft.commit()
        #expect(query["a/2"]?.value.age == 6 && query["a/2"]?.revision == draft.revision)
        try query.update(id: "a/2") { $0.name = "Grace" }
        draft.age = 7
        #expect(#expect(throws: StateError.self) { try draft.commit() }?.code == .conflict)
        #expect(draft.rebase().name == "Grace")
        try draft.commit()
        #expect(query["a/2"]?.value.age == 7)
        try query.delete(id: "a/2")
        #expect(#expect(throws: StateError.self) { try draft.commit() }?.code == .conflict)
        #expect(query["a/2"] == nil)
    }

    @Test func `a sum over rows outside of the limit is observed`() throws {
        for query in Self.queries {
            let live = try keyspace.query(query)
            try? live.insert(Account(), id: "a/1")
            try? live.insert(Account(), id: "a/2")
            let told = Observed(false)
            withObservationTracking {
                _ = live.sum(of: \.age)
            } onChange: {
                told.update { $0 = true }
            }
            try live.update(id: "a/2") { $0.age += 1 }
            #expect(told.wait { $0 })
        }
    }
}
