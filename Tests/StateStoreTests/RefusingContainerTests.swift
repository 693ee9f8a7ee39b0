import StateEngine
import StateStore
import StateTestSupport
import Testing

struct RefusingContainerTests {
    /// A home that refuses counts above 2, and has an output for each count.
    private struct Loud: Reducer {
        func reduce(
            _ message: Message<Int, Never>,
            into state: inout Int
        ) -> Effect<Never, Int> {
            guard case .input(let number) = message else { return .none }
            state = number
            return .output(number)
        }
    }

    @Test func `where the container refuses, settled throws and no effect starts`() async throws {
        let home = MonitoredContainer<Int, StateError>(trackedInMemory: 0, key: "small") {
            number throws(StateError) in
            if number > 2 { throw StateError(.rejected, "\(number) is above 2") }
        }
        let store = Store(home, reducer: Loud())
        var outputs = store.outputStream.makeAsyncIterator()
        let refused = store.send(3)
        await #expect(throws: StateError(.rejected, "3 is above 2")) {
            try await refused.settled()
        }
        await #expect(throws: StateError(.rejected, "3 is above 2")) {
            try await refused.finished()
        }
        #expect(store.state == 0)
        let revision = try await store.send(2).settled()
        #expect(revision == home.versioned.revision)
        #expect(await outputs.next() == 2)
    }

    /// A home that runs each body twice, as one does that is shared with other processes and lost the first race.
    private final class RacingContainer: StoreContainer {
        let state = MonitoredState(10, key: "racing")

        var value: Int { state.value }
        var values: StateValues<Int> { state.values }

        func withValue<R, E: Error>(_ body: (borrowing Int) throws(E) -> R) throws(E) -> R {
            try state.withValue(body)
        }

        func observedValue<Member>(_ path: any KeyPath<Int, Member> & Sendable) -> Member {
            state.observedValue(path)
        }

        func change<R>(
            because reason: @autoclosure () -> String,
            _ body: (inout Int) -> R
        ) throws -> (result: R, revision: Revision) {
            var seenBefore = -1
            _ = body(&seenBefore)
            return state.change(because: reason(), body)
        }

        func part<Part: Equatable & Sendable>(
            _ path: any WritableKeyPath<Int, Part> & Sendable
        ) -> StoreStates<Part> {
            StoreStates(state.scope(path).values)
        }
    }

    private struct Adding: Reducer {
        func reduce(_ message: Message<Int, Never>, into state: inout Int) -> Effect<Never, String>
        {
            guard case .input(let number) = message else { return .none }
            state += number
            return .output("\(state)")
        }
    }

    @Test func `where a reducer runs again, the effects of the committed run alone start`()
        async throws
    {
        let store = Store(in: RacingContainer(), reducer: Adding())
        var outputs = store.outputStream.makeAsyncIterator()
        try await store.send(1).finished()
        store.send(1)
        #expect(await outputs.next() == "11")
        #expect(await outputs.next() == "12")
        #expect(store.state == 12)
    }

    @Test func `of 1,000 messages in a row that were each sent by a listener the next is refused`()
        async throws
    {
        let home = MonitoredContainer<Int, StateError>(trackedInMemory: 0, key: "loop") {
            (_: Int) throws(StateError) in
        }
        let store = Store(home, reducer: Loud())
        let (sent, continuation) = AsyncStream.makeStream(of: Sent.self)
        let observation = home.observe(on: .inline, initial: false) { [weak store] change in
            if let sent = store?.send(change.new + 1) { continuation.yield(sent) }
        }
        store.send(1)
        var refusal: StateError?
        for await sent in sent {
            do { try await sent.settled() } catch let error as StateError {
                refusal = error
                break
            }
        }
        #expect(refusal?.code == .feedbackLoop)
        #expect(home.value == 1_001)
        observation.cancel()
    }

    @Test func `a message sent in the body of modify ends the process`() async {
        await #expect(processExitsWith: .failure) {
            let store = Store(Counter.State(), reducer: Counter())
            State(0, key: "other").modify { _ in _ = store.send(.increment) }
        }
    }
}
