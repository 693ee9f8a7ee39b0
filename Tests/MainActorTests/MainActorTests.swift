import StateContainers
import StateStore
import StateTesting
import Testing

// This target is isolated to the main actor by default, as an app's may be: what an app writes with
// the library compiles, and runs where it is written.

enum AppState {
    static let clicks = MonitoredState(0, key: "clicks")
    static let rating = State<Int?>(nil, key: "rating")
    static let storage = StateStorage.inMemory("app")
    static let volume = PersistentState(5, key: "volume", in: storage)
}

struct Player {
    @StateValue("volume", in: AppState.storage) var volume = 5

    func louder() throws { try $volume ~> { $0 += 1 } }
}

final class Label: MainActorListener {
    var text = ""
    var listened = 0
    private var observation: StateObservation?

    func follow(_ state: MonitoredState<Int>) {
        state.attach(listener: self)
        observation = state.observe { [weak self] change in self?.text = "\(change.new)" }
    }

    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    ) { listened += 1 }
}

struct Clicks: Sendable { var count = 0 }

final class ViewCounter: MainActorStore<Clicks, String> {
    private var clicks = 0

    func click() {
        clicks += 1
        self.count = clicks
        send(output: "click \(clicks)")
    }
}

struct Counting: Reducer {
    enum Input: Sendable { case add(Int) }

    var body: some Reducer<Int, Input, Never, Never> {
        Reduce { count, message in
            if case .input(.add(let amount)) = message { count += amount }
            return .none
        }
    }
}

struct Lamp: Reducer {
    struct State: Hashable, Sendable { var lit = 0 }
    enum Input: Sendable { case switchOn }
    enum Feedback: Hashable, Sendable { case burnt }

    struct Burn: EffectOperation {
        func run(_ send: Send<Feedback>) async {
            try? await send.clock.sleep(for: .seconds(1))
            send(.burnt)
        }
    }

    var body: some Reducer<State, Input, Feedback, String> {
        Reduce { state, message in
            switch message {
            case .input(.switchOn):
                state.lit += 1
                return .run(Burn())
            case .feedback(.burnt):
                state.lit = 0
                return .output("dark")
            }
        }
    }
}

struct MainActorTests {
    @Test func `containers, listeners and closures work without a word about isolation`()
        async throws
    {
        let label = Label()
        label.follow(AppState.clicks)
        AppState.clicks ~> 3
        AppState.rating ~> 4
        while label.text != "3" || label.listened == 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(AppState.rating.value == 4)
        let player = Player()
        try player.louder()
        #expect(player.volume == 6)
    }

    @Test func `stores work without a word about isolation`() async throws {
        let counter = ViewCounter(Clicks())
        var outputs = counter.outputStream.makeAsyncIterator()
        counter.click()
        #expect(counter.count == 1)
        #expect(await outputs.next() == "click 1")
        let store = Store(0, reducer: Counting())
        try await store.send(.add(5)).settled()
        #expect(store.state == 5)
    }

    @Test func `a test store works without a word about isolation`() async throws {
        let clock = TestClock()
        let store = TestStore(Lamp.State(), reducer: Lamp(), clock: clock)
        var lit = 0
        try await store.send(.switchOn) {
            lit += 1
            $0.lit = lit
        }
        await clock.advance(by: .seconds(1))
        try await store.receive(.burnt) { $0.lit = 0 }
        try await store.receive(output: "dark")
        try await store.finish()
    }

    @Test(.isolatedState) func `states and outputs are tested without a word about isolation`()
        async throws
    {
        let clock = TestClock()
        let store = OutcomeTestStore(Lamp.State(), reducer: Lamp(), clock: clock)
        await store.send(.switchOn)
        try await store.expect(.state(Lamp.State(lit: 1)))
        await clock.advance(by: .seconds(1))
        try await store.expect(.state(Lamp.State()), .output("dark"))
        try await store.finish()
        #expect(AppState.clicks.value == 0)
    }
}
