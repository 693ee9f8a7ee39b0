import Observation
import StateStore
import StateTestSupport
import Testing

struct ObservedStoreTests {
    private struct Names: Hashable, Sendable {
        var first = "Ada"
        var last = "Lovelace"
    }

    private final class Open: OpenStore<Names, Never>, @unchecked Sendable {}

    private final class Main: MainActorStore<Names, String> {
        func rename(_ name: String) {
            self.first = name
            self.last += "!"
            send(output: name)
        }
    }

    private enum Phase: Hashable, Sendable {
        case idle, loading
        case loaded(count: Int)
    }

    private final class Loader: MainActorStore<Phase, Never> {
        func load() { state = .loading }
    }

    @MainActor @Test
    func `a store of the main actor is assigned as a whole, and read by any thread`() async {
        let loader = Loader(.idle)
        let isSeen = isReported {
            _ = loader.state
        } _: {
            loader.load()
        }
        #expect(isSeen && loader.state == .loading)
        loader.state = .loaded(count: 2)
        nonisolated func read(_ store: some StoreType<Phase, Never>) -> Phase { store.state }
        let read = await Task.detached { (loader.state, read(loader)) }.value
        #expect(read == (.loaded(count: 2), .loaded(count: 2)))
        let main = Main(Names())
        main.state.first = "Grace"
        #expect(main.state == Names(first: "Grace"))
    }

    private func isReported(_ read: () -> Void, _ change: () -> Void) -> Bool {
        let isReported = Observed(false)
        withObservationTracking(read) { isReported.update { $0 = true } }
        change()
        return isReported.current
    }

    @Test func `a store reports by the property`() {
        let store = Store(Counter.State(), reducer: Counter())
        #expect(
            isReported {
                _ = store.count
            } _: {
                store.send(.increment)
            }
        )
        #expect(
            !isReported {
                _ = store.loaded
            } _: {
                store.send(.increment)
            }
        )
        #expect(
            isReported {
                _ = store.state
            } _: {
                store.send(.increment)
            }
        )
        #expect(
            !isReported {
                _ = store.count
            } _: {
                store.send(.set(3))
            }
        )
        let binding = store.binding(\.count) { .set($0) }
        binding.wrappedValue = 9
        #expect(store.count == 9)
    }

    @Test func `an open store reports by the property, and is written by a binding`() {
        let store = Open(Names())
        #expect(
            isReported {
                _ = store.first
            } _: {
                store.modify { $0.first = "Grace" }
            }
        )
        #expect(
            !isReported {
                _ = store.first
            } _: {
                store.modify { $0.last = "Hopper" }
            }
        )
        store.binding(\.last).wrappedValue = "H"
        #expect(store.state == Names(first: "Grace", last: "H"))
    }

    @Test @MainActor func `a store of the main actor is changed by its properties`() async {
        let store = Main(Names())
        var outputs = store.outputStream.makeAsyncIterator()
        #expect(
            isReported {
                _ = store.first
            } _: {
                store.rename("Grace")
            }
        )
        #expect(store.state == Names(first: "Grace", last: "Lovelace!"))
        #expect(await outputs.next() == "Grace")
        store.binding(\.first).wrappedValue = "Ada"
        let state = await Task.detached { store.state.first }.value
        #expect(state == "Ada")
    }
}
