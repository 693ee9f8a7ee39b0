import StateStore

/// What most tests send messages to.
struct Counter: Reducer {
    struct State: Hashable, Sendable {
        var count = 0
        var loaded: [String] = []
    }

    enum Input: Hashable, Sendable {
        case increment
        case set(Int)
        case say(String)
        /// An effect whose feedback comes after so long.
        case load(String, after: Duration)
        case search(String)
        case tick
        case inTurn([String])
        case cancel(String)
        case hang
    }

    enum Feedback: Hashable, Sendable {
        case loaded(String)
        case tick
    }

    func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, String> {
        switch message {
        case .input(let input): return reduce(input, into: &state)
        case .feedback(.loaded(let text)): state.loaded.append(text)
        case .feedback(.tick): state.count += 1
        }
        return .none
    }

    private func reduce(_ input: Input, into state: inout State) -> Effect<Feedback, String> {
        switch input {
        case .increment: state.count += 1
        case .set(let count): state.count = count
        case .say(let text): return .output(text)
        case .load(let text, let time): return load(text, after: time).cancellable(id: "load")
        case .search(let text):
            return .debounce(id: "search", for: .milliseconds(300), load(text, after: .zero))
        case .tick: return .timer(id: "tick", every: .seconds(1), .tick)
        case .inTurn(let texts):
            let effects = texts.map { load($0, after: .seconds(1)).cancellable(id: $0) }
            return .concatenate(effects + [.output("done")])
        case .cancel(let id): return .cancel(id: id)
        case .hang:
            return .run { send in
                try? await send.clock.sleep(for: .seconds(1_000))
                send(.loaded("never"))
            }
        }
        return .none
    }

    private func load(_ text: String, after time: Duration) -> Effect<Feedback, String> {
        .run { send in
            do { if time > .zero { try await send.clock.sleep(for: time) } } catch { return }
            send(.loaded(text))
        }
    }
}
