import StateStore
import StateTestSupport
import StateTesting
import Testing

struct CancellationTests {
    private let clock = TestClock()

    @Test func `a task that waits for a message and is cancelled cancels the message's effects`()
        async throws
    {
        let store = Store(Counter.State(), reducer: Counter(), clock: clock)
        let sent = store.send(.hang)
        let task = Task { try await sent.finished() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        // Its effect sleeps for 1,000 s unless it is cancelled.
        try await sent.finished()
        #expect(store.state == Counter.State())
    }

    @Test func `a cancelled message ends its effects, and no other's`() async throws {
        let store = Store(Counter.State(), reducer: Counter(), clock: clock)
        let (first, second) = (
            store.send(.load("a", after: .seconds(1))), store.send(.load("b", after: .seconds(1)))
        )
        first.cancel()
        try await first.finished()
        await clock.advance(by: .seconds(1))
        try await second.finished()
        #expect(store.loaded == ["b"])
    }

    @Test func `waiting for the commit alone cancels nothing`() async throws {
        let store = Store(Counter.State(), reducer: Counter(), clock: clock)
        let sent = store.send(.load("a", after: .seconds(1)))
        let task = Task { try await sent.settled() }
        task.cancel()
        _ = try? await task.value
        await clock.advance(by: .seconds(1))
        try await sent.finished()
        #expect(store.loaded == ["a"])
    }

    @Test func `a message that is cancelled before it is handled is not handled`() async throws {
        let (entered, opened) = (Observed(false), Observed(false))
        let reducer = Reduce<Int, Int, Never, Never> { state, message in
            if case .input(0) = message {
                entered.update { $0 = true }
                _ = opened.wait { $0 }
            }
            if case .input(let number) = message { state += number }
            return .none
        }
        let store = Store(0, reducer: reducer)
        WorkerThread(name: "sender").start { store.send(0) }
        #expect(entered.wait { $0 })
        let sent = store.send(5)
        sent.cancel()
        opened.update { $0 = true }
        await #expect(throws: CancellationError.self) { try await sent.settled() }
        #expect(store.state == 0)
    }
}
