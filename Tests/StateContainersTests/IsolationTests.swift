import StateContainers
import StateTestSupport
import Testing

struct IsolationTests {
    @MainActor
    private final class View: MainActorListener {
        var shown: [Int] = []
        var listened: [Int] = []
        private var observation: StateObservation?

        func follow(_ state: MonitoredState<Int>) {
            state.attach(listener: self)
            observation = state.observe { [weak self] change in
                MainActor.preconditionIsolated()
                self?.shown.append(change.new)
            }
        }

        func hasAll(to number: Int) -> Bool { shown.last == number && listened.last == number }

        func stateModified<Value, Failure>(
            _ state: StateContainer<Value, Failure>,
            _ change: StateChange<Value>
        ) {
            MainActor.preconditionIsolated()
            if let change = change as? StateChange<Int> { listened.append(change.new) }
        }
    }

    private actor Counter {
        var seen: [Int] = []
        private var observation: StateObservation?

        func follow(_ state: MonitoredState<Int>) {
            observation = state.observe { change in
                self.preconditionIsolated()
                self.seen.append(change.new)
            }
        }
    }

    private func waits(_ condition: () async -> Bool) async -> Bool {
        // The actor's turn comes behind the tests that are waiting for a thread.
        let deadline = ContinuousClock.now + .seconds(900)
        while ContinuousClock.now < deadline {
            if await condition() { return true }
            await Task.yield()
        }
        return false
    }

    @Test func `a closure and a listener of the main actor run there`() async {
        let state = MonitoredState(0, key: "a")
        let view = View()
        await view.follow(state)
        for number in 1...100 { state ~> number }
        #expect(await waits { await view.hasAll(to: 100) })
        #expect(await view.shown == view.shown.sorted())
        state.detach(listener: view)
    }

    @Test func `a closure of another actor runs on it, in order`() async {
        let state = MonitoredState(0, key: "a")
        let counter = Counter()
        await counter.follow(state)
        for number in 1...100 { state ~> number }
        #expect(await waits { await counter.seen.last == 100 })
        #expect(await counter.seen == counter.seen.sorted())
    }

    @Test func `a closure of no actor runs on the notifier, in the scope where it was made`() {
        let state = MonitoredState(0, key: "a")
        let seen = Observed<[Int]>([])
        StateScope.run {
            let observation = state.observe { change in
                seen.update { $0.append(state.value) }
                _ = change
            }
            state ~> 3
            #expect(seen.wait { $0.last == 3 })
            withExtendedLifetime(observation) {}
        }
        #expect(state.value == 0)
    }
}
