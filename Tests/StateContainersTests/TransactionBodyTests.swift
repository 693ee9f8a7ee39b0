import StateContainers
import StateTestSupport
import Testing

/// No lost update: a container that is used in the body of a transaction, but not through it, ends the process.
struct TransactionBodyTests {
    private static func trap(
        _ words: [String],
        _ result: ExitTest.Result?
    ) {
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        for word in words + ["TransactionBodyTests.swift:"] {
            #expect(text.contains(word), "\(word) is not in \(text.suffix(1_000))")
        }
    }

    @Test func `No hidden deadlock: reading a container in the body of a transaction traps`() async
    {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let (first, second) = (State(0, key: "one/a"), State(1, key: "two/b"))
            try await withTransaction { tx in
                tx[first] = 1
                tx[first] += second.value
            }
        }
        Self.trap(["one/a", "two/b", "tx[state]"], result)
    }

    @Test func `No hidden deadlock: reading its own container but not through it traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let state = MonitoredState(0, key: "one/a")
            try await withTransaction { tx in tx[state] = state.withValue { $0 + 1 } }
        }
        Self.trap(["one/a"], result)
    }

    @Test func `No hidden deadlock: modifying a stored container in the body traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let keyspace = try LocalKeyspace(backing: MemoryBacking())
            let first = try await PersistentState(0, key: "one/a", in: keyspace, codec: digits)
            let second = try await PersistentState(0, key: "two/b", in: keyspace, codec: digits)
            try await withTransaction { tx in
                tx[first] += 1
                try second.modify { $0 += 1 }
            }
        }
        Self.trap(["one/a", "two/b"], result)
    }

    @Test func `No hidden deadlock: a transaction in the body of another traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let (first, second) = (State(0, key: "one/a"), State(1, key: "two/b"))
            try await withTransaction { tx in
                tx[first] += 1
                try withTransaction { inner in inner[second] += 1 }
            }
        }
        Self.trap(["one/a", "withTransaction is used"], result)
    }

    @Test func `a body that throws leaves containers usable`() throws {
        struct Refusal: Error {}
        let state = State(0, key: "one/a")
        #expect(throws: Refusal.self) { try withTransaction { _ in throw Refusal() } }
        state ~> 1
        #expect(state.value == 1)
    }
}
