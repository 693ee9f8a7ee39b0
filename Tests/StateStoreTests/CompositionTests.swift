import StateStore
import StateTestSupport
import StateTesting
import Testing

struct CompositionTests {
    private struct Failed: Error {}

    private struct Child: Reducer {
        struct State: Hashable, Sendable, Identifiable {
            var id = 0
            var count = 0
        }

        enum Input: Hashable, Sendable {
            case add, wait, fail, again
            case replace(Duration)
        }
        enum Feedback: Hashable, Sendable { case added, failed }

        var body: some Reducer<State, Input, Feedback, String> {
            Reduce { state, message in
                switch message {
                case .input(.add): return .send(.added)
                case .input(.wait): return after(.seconds(1))
                case .input(.fail): return .run(catch: { _ in .failed }) { _ in throw Failed() }
                case .input(.again):
                    return .run { _ in
                        throw Failed()
                    } catch: { _, send in
                        send(.failed)
                    }
                case .input(.replace(let time)):
                    return after(time).cancellable(id: "later", cancelInFlight: true)
                case .feedback(.added): state.count += 1
                case .feedback(.failed): state.count = -1
                }
                return .none
            }
            Reduce { state, message in
                state.count == 2 && message.isFeedback ? .output("two") : .none
            }
        }

        private func after(_ time: Duration) -> Effect<Feedback, String> {
            .run { send in
                try await send.clock.sleep(for: time)
                send(.added)
            } catch: { _, _ in
            }
        }
    }

    private struct Parent: Reducer {
        struct State: Hashable, Sendable {
            var child: Child.State?
            var children: [Child.State] = []
        }

        enum Input: Hashable, Sendable {
            case child(Child.Input)
            case element(Int, Child.Input)
            case close
        }
        enum Feedback: Hashable, Sendable {
            case child(Child.Feedback)
            case element(Int, Child.Feedback)
        }

        var body: some Reducer<State, Input, Feedback, String> {
            Reduce { state, message in
                if case .input(.close) = message { state = State() }
                return .none
            }
            .ifLet(
                \.child,
                input: { if case .child(let input) = $0 { input } else { nil } },
                feedback: (
                    { if case .child(let back) = $0 { back } else { nil } }, { .child($0) }
                ),
                output: { "child \($0)" },
                then: Child()
            )
            .forEach(
                \.children,
                input: { if case .element(let id, let input) = $0 { (id, input) } else { nil } },
                feedback: (
                    { if case .element(let id, let back) = $0 { (id, back) } else { nil } },
                    { .element($0, $1) }
                ),
                output: { "\($0) \($1)" },
                then: Child()
            )
        }
    }

    private let clock = TestClock()

    @Test func `the reducers of a body get each message in turn, and an effect sends at once`()
        async throws
    {
        let store = TestStore(Child.State(), reducer: Child(), clock: clock, timeout: .seconds(60))
        try await store.send(.add)
        try await store.receive(.added) { $0.count = 1 }
        try await store.send(.add)
        try await store.receive(.added) { $0.count = 2 }
        try await store.receive(output: "two")
        try await store.finish()
    }

    @Test(arguments: [true, false]) func `what an effect throws is handled`(
        byClosure: Bool
    )
        async throws
    {
        let store = TestStore(Child.State(), reducer: Child(), clock: clock, timeout: .seconds(60))
        try await store.send(byClosure ? .again : .fail)
        try await store.receive(.failed) { $0.count = -1 }
        try await store.finish()
    }

    @Test func `cancelInFlight keeps the last effect of an id`() async throws {
        let store = TestStore(Child.State(), reducer: Child(), clock: clock, timeout: .seconds(60))
        try await store.send(.replace(.seconds(5)))
        try await store.send(.replace(.seconds(1)))
        await clock.advance(by: .seconds(1))
        try await store.receive(.added) { $0.count = 1 }
        try await store.finish()
    }

    @Test func `an Optional child gets its messages while it is there`() async throws {
        let store = TestStore(
            Parent.State(child: .init()),
            reducer: Parent(),
            clock: clock,
            timeout: .seconds(60)
        )
        try await store.send(.child(.add))
        try await store.receive(.child(.added)) { $0.child?.count = 1 }
        try await store.send(.child(.add))
        try await store.receive(.child(.added)) { $0.child?.count = 2 }
        try await store.receive(output: "child two")
        try await store.send(.child(.wait))
        try await store.send(.close) { $0.child = nil }
        await clock.advance(by: .seconds(1))
        try await store.send(.child(.add))
        try await store.finish()
    }

    @Test func `each element gets its messages, and its effects end with it`() async throws {
        let state = Parent.State(children: [.init(id: 1), .init(id: 2)])
        let store = TestStore(state, reducer: Parent(), clock: clock, timeout: .seconds(60))
        try await store.send(.element(2, .add))
        try await store.receive(.element(2, .added)) { $0.children[1].count = 1 }
        try await store.send(.element(3, .add))
        try await store.send(.element(1, .wait))
        try await store.send(.close) { $0.children = [] }
        await clock.advance(by: .seconds(1))
        try await store.finish()
    }
}

extension Message {
    fileprivate var isFeedback: Bool { if case .feedback = self { true } else { false } }
}
