import StateStore
import StateTestSupport
import StateTesting
import Testing

struct EffectTests {
    private let clock = TestClock()

    private func makeStore() -> TestStore<Counter> {
        // The other tests keep the few threads of the pool busy.
        TestStore(Counter.State(), reducer: Counter(), clock: clock, timeout: .seconds(60))
    }

    @Test func `a debounced effect runs for the last of its messages only`() async throws {
        let store = makeStore()
        try await store.send(.search("a"))
        await clock.advance(by: .milliseconds(200))
        try await store.send(.search("ab"))
        await clock.advance(by: .milliseconds(299))
        try await store.send(.search("abc"))
        await clock.advance(by: .milliseconds(300))
        try await store.receive(.loaded("abc")) { $0.loaded = ["abc"] }
        try await store.finish()
    }

    @Test func `a timer fires each time until it is cancelled`() async throws {
        let store = makeStore()
        try await store.send(.tick)
        await clock.advance(by: .seconds(3))
        for count in 1...3 { try await store.receive(.tick) { $0.count = count } }
        try await store.send(.cancel("tick"))
        await clock.advance(by: .seconds(3))
        try await store.finish()
    }

    @Test func `a cancelled effect is heard no more`() async throws {
        let store = makeStore()
        try await store.send(.load("a", after: .seconds(1)))
        try await store.send(.cancel("load"))
        await clock.advance(by: .seconds(2))
        try await store.finish()
        #expect(store.store.loaded == [])
    }

    @Test
    func
        `concatenated effects run one after the other, and a cancellation covers those still queued`()
        async throws
    {
        let store = makeStore()
        try await store.send(.inTurn(["a", "b", "c"]))
        try await store.send(.cancel("b"))
        await clock.advance(by: .seconds(1))
        try await store.receive(.loaded("a")) { $0.loaded = ["a"] }
        await clock.advance(by: .seconds(1))
        try await store.receive(.loaded("c")) { $0.loaded = ["a", "c"] }
        try await store.receive(output: "done")
        try await store.finish()
    }

    @Test func `cancellation ids belong to one store`() async throws {
        let (first, second) = (makeStore(), makeStore())
        try await first.send(.tick)
        try await second.send(.tick)
        try await first.send(.cancel("tick"))
        await clock.advance(by: .seconds(1))
        try await second.receive(.tick) { $0.count = 1 }
        #expect(first.store.count == 0)
        try await second.send(.cancel("tick"))
        try await second.finish()
        try await first.finish()
    }

    @Test func `a store that goes away cancels its effects`() async throws {
        var store: Store<Counter>? = Store(Counter.State(), reducer: Counter())
        let sent = store?.send(.hang)
        weak let gone = store
        store = nil
        #expect(gone == nil)
        // Its effect sleeps for 1,000 s unless it is cancelled.
        try await sent?.finished()
    }

    @Test func `one that waits for an effect may give up`() async {
        let store = Store(Counter.State(), reducer: Counter(), clock: clock)
        let sent = store.send(.hang)
        let task = Task { try await sent.finished() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(store.count == 0)
    }

    @Test func `a cancelled effect that goes on is not heard either`() async throws {
        let gate = MonitoredState(false, key: "gate")
        let reducer = Reduce<Int, Bool, Int, Never> { state, message in
            switch message {
            case .input(true):
                return .run { send in
                    // In a task of its own, which is not cancelled with it.
                    let opened = Task { try await gate.wait(timeout: .seconds(20)) { $0 } }
                    _ = try? await opened.value
                    send(7)
                }
                .cancellable(id: 1)
            case .input(false): return .cancel(id: 1)
            case .feedback(let number): state = number
            }
            return .none
        }
        for isCancelled in [false, true] {
            let store = Store(0, reducer: reducer)
            gate ~> false
            let sent = store.send(true)
            if isCancelled { store.send(false) }
            gate ~> true
            try await sent.finished()
            #expect(store.state == (isCancelled ? 0 : 7))
        }
    }
}
