import StateStore
import StateTestSupport
import Testing

struct PartTests {
    private struct Whole: Sendable, Equatable {
        var left = Counter.State()
        var right = Counter.State()
    }

    private enum Side<Message: Sendable>: Sendable {
        case left(Message)
        case right(Message)

        var left: Message? { if case .left(let message) = self { message } else { nil } }
        var right: Message? { if case .right(let message) = self { message } else { nil } }
    }

    private typealias Both = Reduce<Whole, Side<Counter.Input>, Side<Counter.Feedback>, String>

    private func makeStore() -> Store<Both> {
        let left = Scope<Whole, Side<Counter.Input>, Side<Counter.Feedback>, String, Counter>(
            state: \.left,
            input: { $0.left },
            feedback: (from: { $0.left }, to: { .left($0) }),
            output: { "left \($0)" },
            Counter()
        )
        let right = Scope<Whole, Side<Counter.Input>, Side<Counter.Feedback>, String, Counter>(
            state: \.right,
            input: { $0.right },
            feedback: (from: { $0.right }, to: { .right($0) }),
            output: { "right \($0)" },
            Counter()
        )
        return Store(Whole(), reducer: left.combined(with: right))
    }

    @Test func `each piece of a reducer answers what is of its part`() async throws {
        let store = makeStore()
        var outputs = store.outputStream.makeAsyncIterator()
        store.send(.left(.increment))
        store.send(.right(.set(5)))
        try await store.send(.right(.load("x", after: .zero))).finished()
        store.send(.right(.say("hello")))
        #expect(store.left.count == 1)
        #expect(store.right == Counter.State(count: 5, loaded: ["x"]))
        #expect(await outputs.next() == "right hello")
    }

    @Test func `a scoped store wakes only for its part`() async {
        let store = makeStore()
        let left = store.scope(state: \.left) { (input: Counter.Input) in .left(input) }
        let count = left.scope(state: \.count) { (count: Int) in .set(count) }
        var states = left.stateStream.makeAsyncIterator()
        var counts = count.stateStream.makeAsyncIterator()
        #expect(await states.next()?.count == 0)
        #expect(await counts.next() == 0)
        for number in 1...10 { store.send(.right(.set(number))) }
        count.send(3)
        #expect(await states.next()?.count == 3)
        #expect(await counts.next() == 3)
        #expect(left.count == 3)
    }

    @Test func `an output and a state of another become inputs`() async throws {
        let store = Store(Counter.State(), reducer: Counter())
        let other = Store(Counter.State(), reducer: Counter())
        let container = MonitoredState(0, key: "container")
        store.react(to: other) { $0 == "up" ? .increment : nil }
        store.react(to: container) { .set($0.new) }
        other.send(.say("up"))
        other.send(.say("down"))
        #expect(store.count == 1)
        container ~> 40
        #expect(store.count == 40)
        let follower = Store(Counter.State(), reducer: Counter())
        follower.react(toStateOf: other) { .set($0.count * 2) }
        other.send(.set(21))
        for await state in follower.stateStream where state.count == 42 { break }
    }

    @Test func `a view model hides the state and is swapped without its view knowing`() {
        final class Mock: ViewModel {
            let store = OpenStoreMock("mock")
            var state: String { store.state }
            var stateStream: StoreStates<String> { store.stateStream }
            func trigger(_ input: Int) { store.modify("mock \(input)") }
        }
        let store = Store(Counter.State(), reducer: Counter())
        let real = AnyViewModel(
            store,
            view: { "\($0.count)" },
            input: { (count: Int) in .set(count) }
        )
        let models = [real, AnyViewModel(Mock())]
        for model in models { model.trigger(4) }
        #expect(models.map(\.state) == ["4", "mock 4"])
    }

    @Test func `Atomic: 4 threads that change an open store lose nothing, and none can assign`() {
        let path: AnyKeyPath = \OpenStoreCount.state
        #expect(!(path is ReferenceWritableKeyPath<OpenStoreCount, Int>))
        let store = OpenStoreCount(0)
        onThreads(4) { _ in for _ in 0..<1_000 { store.modify { $0 += 1 } } }
        #expect(store.state == 4_000)
        store.modify(7)
        #expect(store.state == 7)
    }
}

final class OpenStoreMock: OpenStore<String, Never>, @unchecked Sendable {}

final class OpenStoreCount: OpenStore<Int, Never>, @unchecked Sendable {}
