import StateStore

/// A counter of the main actor: only code of the main actor changes it, so `+=` loses nothing.
private final class Clicks: MainActorStore<Clicks.State, String> {
    struct State: Sendable {
        var count = 0
        var name = ""
    }

    func click() {
        self.count += 1
        if self.count == 2 { send(output: "twice") }
    }
}

/// A view on the main actor: as a listener, and by a closure that runs where it is written.
@MainActor
private final class Label: MainActorListener {
    private(set) var text = ""
    /// The names of what was called, in order.
    let calls = AsyncStream<String>.makeStream()
    private var observation: StateObservation?

    func follow(_ state: MonitoredState<Int>) {
        state.attach(listener: self)
        observation = state.observe { [weak self] change in
            self?.text = "\(change.new)"
            self?.calls.continuation.yield("closure")
        }
    }

    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    ) { calls.continuation.yield("listener") }
}

extension Example {
    static let mainActorStore = Example(
        name: "main-actor-store",
        summary: "a store of the main actor: properties are read and written by their names"
    ) { checks in
        await Task { @MainActor in
            let store = Clicks(Clicks.State())
            var outputs = store.outputStream.makeAsyncIterator()
            store.click()
            store.click()
            checks.expect(store.count == 2, "two clicks")
            checks.expect(await outputs.next() == "twice", "and their output")
            let name = store.binding(\.name)
            name.wrappedValue = "Ada"
            checks.expect(store.name == "Ada" && store.count == 2, "a binding changes one property")
        }.value
    }

    static let mainActorListener = Example(
        name: "main-actor-listener",
        summary: "a listener and a closure on the main actor, without nonisolated or assumeIsolated"
    ) { checks in
        let state = MonitoredState(0, key: "clicks")
        let label = Label()
        await label.follow(state)
        state ~> 7
        var missing: Set = ["closure", "listener"]
        for await one in label.calls.stream {
            missing.remove(one)
            if await label.text == "7", missing.isEmpty { break }
        }
        checks.expect(missing.isEmpty, "both ran on the main actor")
    }
}
