import StateStore
import StateTestSupport
import Testing

/// An object whose end changes a container.
private final class Session: Sendable {
    private let closed: State<Int>
    init(_ closed: State<Int>) { self.closed = closed }
    deinit { closed.modify { $0 += 1 } }
}

/// What a store's state or output replaces may change a container when it goes.
struct StoreReleaseTests {
    private let closed = State(0, key: "session/closed")

    @Test func `an object in the state of an open store`() {
        struct App: Sendable { var session: Session? }
        final class Open: OpenStore<App, Never>, @unchecked Sendable {}
        let store = Open(App())
        store.modify { $0.session = Session(closed) }
        store.modify { $0.session = nil }
        store.set(App(session: Session(closed)))
        store.binding(\.session).wrappedValue = nil
        #expect(closed.value == 2)
    }

    @Test @MainActor func `an object in the state of a store of the main actor`() {
        struct App: Sendable { var session: Session? }
        final class Main: MainActorStore<App, Never> {}
        let store = Main(App())
        store.session = Session(closed)
        store.session = nil
        store.set(App(session: Session(closed)))
        store.modify { $0.session = nil }
        #expect(closed.value == 2)
    }

    @Test func `an object in the state of a reducer`() async throws {
        let reducer = Reduce<Session?, Session?, Never, Never> { state, message in
            if case .input(let session) = message { state = session }
            return .none
        }
        let store = Store(nil, reducer: reducer)
        try await store.send(Session(closed)).finished()
        try await store.send(nil).finished()
        #expect(closed.value == 1)
    }

    @Test func `an output that a slow reader loses may send another`() async {
        final class Frame: Sendable {
            private let store: OpenStore<Int, Frame?>
            init(_ store: OpenStore<Int, Frame?>) { self.store = store }
            deinit { store.send(output: nil) }
        }
        let store = OpenStore<Int, Frame?>(0)
        let outputs = store.outputStream
        for _ in 0..<StoreOutputs<Frame?>.bufferLimit + 1 { store.send(output: Frame(store)) }
        #expect(outputs.skipped > 1)
    }
}
