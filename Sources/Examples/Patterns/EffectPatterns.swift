import StateStore

/// Searches: the types of the closure are those of the body.
private struct Search: Reducer {
    struct State: Hashable, Sendable, Identifiable {
        var id = 0
        var found: [String] = []
        var message = ""
    }

    enum Input: Sendable {
        case type(String)
        case clear
    }
    enum Feedback: Sendable {
        case found([String])
        case failed(String)
        case cleared
    }

    struct Empty: Error {}

    var body: some Reducer<State, Input, Feedback, Never> {
        Reduce { state, message in
            switch message {
            case .input(.type(let text)):
                return .run(catch: { .failed("\($0)") }) { send in
                    if text.isEmpty { throw Empty() }
                    if text.count == 1 { try await send.clock.sleep(for: .seconds(1_000)) }
                    send(.found(["\(text)ple"]))
                }
                .cancellable(id: "search", cancelInFlight: true)
            case .input(.clear): return .send(.cleared)
            case .feedback(.found(let found)): state.found = found
            case .feedback(.failed(let reason)): state.message = reason
            case .feedback(.cleared): state.found = []
            }
            return .none
        }
    }
}

/// A window with a search that may be open, and several in a list.
private struct Window: Reducer {
    struct State: Sendable {
        var search: Search.State?
        var list = [Search.State(id: 1), Search.State(id: 2)]
    }

    enum Input: Sendable {
        case search(Search.Input)
        case element(Int, Search.Input)
        case close
    }
    enum Feedback: Sendable {
        case search(Search.Feedback)
        case element(Int, Search.Feedback)
    }

    var body: some Reducer<State, Input, Feedback, Never> {
        Reduce { state, message in
            if case .input(.close) = message { (state.search, state.list) = (nil, []) }
            return .none
        }
        .ifLet(
            \.search,
            input: { if case .search(let input) = $0 { input } else { nil } },
            feedback: ({ if case .search(let back) = $0 { back } else { nil } }, { .search($0) }),
            then: Search()
        )
        .forEach(
            \.list,
            input: { if case .element(let id, let input) = $0 { (id, input) } else { nil } },
            feedback: (
                { if case .element(let id, let back) = $0 { (id, back) } else { nil } },
                { .element($0, $1) }
            ),
            then: Search()
        )
    }
}

extension Example {
    static let search = Example(
        name: "search",
        summary: "a reducer with a body: Effect.send, cancelInFlight, and an effect that throws"
    ) { checks in
        let store = Store(Search.State(), reducer: Search())
        let slow = store.send(.type("a"))
        try await store.send(.type("ap")).finished()
        try await slow.finished()
        checks.expect(store.found == ["apple"], "the later search has cancelled the earlier one")
        try await store.send(.type("")).finished()
        checks.expect(store.message == "Empty()", "what an effect throws becomes feedback")
        try await store.send(.clear).finished()
        checks.expect(store.found == [], "an effect sends feedback at once")
        let hanging = store.send(.type("b"))
        hanging.cancel()
        try await hanging.finished()
        checks.expect(true, "a message that is cancelled ends its effects")
    }

    static let childReducers = Example(
        name: "child-reducers",
        summary: "ifLet and forEach: a child's effects end when the child goes"
    ) { checks in
        let store = Store(Window.State(search: .init()), reducer: Window())
        try await store.send(.search(.type("ap"))).finished()
        try await store.send(.element(2, .type("sam"))).finished()
        checks.expect(store.search?.found == ["apple"], "the Optional child has its messages")
        checks.expect(store.list.map(\.found) == [[], ["sample"]], "so has the element")
        let sent = [store.send(.search(.type("x"))), store.send(.element(1, .type("y")))]
        store.send(.close)
        for sent in sent { try await sent.finished() }
        checks.expect(store.search == nil, "a search of a closed window does not go on")
    }
}
