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

    /// Its answers come at once, and wait behind the messages that are there.
    private struct Finder: Reducer {
        enum Input: Sendable {
            case find(String)
            case findBoth
            case stop
            case hold(@Sendable () -> Void)
        }

        func reduce(
            _ message: Message<Input, String>,
            into state: inout [String]
        ) -> Effect<String, Never> {
            switch message {
            case .input(.find(let text)):
                return .send(text).cancellable(id: "find", cancelInFlight: true)
            case .input(.findBoth):
                return .concatenate(.send("first"), .send("second")).cancellable(id: "find")
            case .input(.stop): return .cancel(id: "find")
            case .input(.hold(let wait)): wait()
            case .feedback(let text): state.append(text)
            }
            return .none
        }
    }

    private static let overtaken: [(inputs: [Finder.Input], answers: [String])] = [
        ([.find("old"), .stop], []),
        ([.find("old"), .find("new")], ["new"]),
        ([.findBoth, .stop], []),
        ([.findBoth, .find("new")], ["new"]),
    ]

    @Test(arguments: 0..<4)
    func `an answer that waits behind the message that cancels its effect does not arrive`(
        number: Int
    ) async throws {
        let (inputs, answers) = CancellationTests.overtaken[number]
        let (entered, opened) = (Observed(false), Observed(false))
        let store = Store([], reducer: Finder())
        WorkerThread(name: "sender").start {
            store.send(
                .hold {
                    entered.update { $0 = true }
                    _ = opened.wait { $0 }
                }
            )
        }
        #expect(entered.wait { $0 })
        let sent = inputs.map { store.send($0) }
        opened.update { $0 = true }
        for message in sent { try await message.finished() }
        #expect(store.state == answers)
    }
}
