import StateStore
import StateTesting
import Testing

struct OutcomeTestStoreTests {
    /// Loads a number: two states, and an output for the second.
    private struct Loader: Reducer {
        enum State: Hashable, Sendable {
            case idle, loading
            case loaded(Int)
        }

        enum Input: Hashable, Sendable { case load, reset }

        func reduce(
            _ message: Message<Input, Int>,
            into state: inout State
        ) -> Effect<Int, String> {
            switch message {
            case .input(.load):
                state = .loading
                return .concatenate(
                    .output("begun"),
                    .run { send in
                        await Task.yield()
                        send(5)
                    }
                )
            case .input(.reset): state = .idle
            case .feedback(let number):
                state = .loaded(number)
                return .output("done")
            }
            return .none
        }
    }

    private static func makeStore(line: Int = #line) -> OutcomeTestStore<Loader> {
        OutcomeTestStore(.idle, reducer: Loader(), timeout: .seconds(60), line: line)
    }

    @Test func `states and outputs come in their order, without a word about messages`()
        async throws
    {
        let store = Self.makeStore()
        await store.send(.load)
        try await store.expect(.state(.loading), .output("begun"))
        try await store.expect(.state(.loaded(5)), .output("done"))
        await store.send(.reset)
        await store.send(.reset)
        try await store.expect(.state(.idle))
        try await store.finish()
    }

    @Test func `inputs that are sent at once are handled with their effects, one after the other`()
        async throws
    {
        for _ in 0..<100 {
            let store = Self.makeStore()
            await store.send(.load)
            await store.send(.reset)
            try await store.expect(.state(.loading), .output("begun"), .state(.loaded(5)))
            try await store.expect(.output("done"), .state(.idle))
            try await store.finish()
        }
    }

    @Test func `another order is an issue at the line of the call, which shows both`() async throws
    {
        let line = #line + 4
        let found = try await issues {
            let store = Self.makeStore()
            await store.send(.load)
            try await store.expect(.state(.loading), .state(.loaded(5)), .output("begun"))
        }
        #expect(found.map(\.line) == [line])
        #expect(
            found.first?.text == """
                unexpected output "begun": (- expected, + actual)
                  Array<Outcome> (
                    state(loading)
                -   state(loaded(5))
                    output("begun")
                +   state(loaded(5))
                  )
                """
        )
    }

    @Test func `a state or an output that the test does not name is an issue`() async throws {
        let line = #line + 5
        let found = try await issues {
            let store = Self.makeStore()
            await store.send(.load)
            try await store.expect(.state(.loading), .output("begun"), .state(.loaded(5)))
            try await store.finish()
        }
        #expect(found == [Found(line: line, text: #"the test did not check: output "done""#)])
    }

    @Test func `a state that a test leaves is an issue at the line of its store`() async throws {
        let line = #line + 2
        let found = try await issues {
            let store = Self.makeStore()
            await store.send(.load)
        }
        #expect(found.map(\.line) == [line])
    }

    @Test func `a state that cannot come any more is a failure at once`() async {
        let shown = await failure {
            let store = Self.makeStore()
            await store.send(.reset)
            try await store.expect(.state(.idle))
        }
        #expect(shown.contains("state idle cannot arrive, because all effects have ended"))
    }
}
