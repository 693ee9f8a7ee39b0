import StateStore
import StateTesting

/// Numbers that are loaded: idle, loading, loaded, or an error; each end is also an output.
enum Numbers {
    enum State: Hashable, Sendable {
        case idle, loading
        case loaded(Int)
        case failed(String)
    }

    enum Output: Hashable, Sendable { case done, gaveUp }

    enum Input: Hashable, Sendable {
        case load(Int)
        case reset
    }

    enum Feedback: Hashable, Sendable {
        case loaded(Int)
        case failed(String)
    }

    struct Unlucky: Error { let message: String }

    /// The service: 13 is unlucky.
    @Sendable static func square(_ number: Int) async throws(Unlucky) -> Int {
        await Task.yield()
        if number == 13 { throw Unlucky(message: "13 is unlucky") }
        return number * number
    }

    static func feedback(for number: Int) async -> Feedback {
        do { return .loaded(try await square(number)) } catch { return .failed(error.message) }
    }

    /// The script that every variant passes: states and outputs in order.
    static func script(
        _ checks: Checks,
        _ store: some StoreType<State, Output>,
        load: (Int) async throws -> Void,
        reset: () async throws -> Void
    ) async throws {
        var outputs = store.outputStream.makeAsyncIterator()
        checks.expect(store.state == .idle, "it begins idle")
        try await load(4)
        checks.expect(store.state == .loaded(16), "4 is loaded as 16")
        checks.expect(await outputs.next() == .done, "the output is done")
        try await load(13)
        checks.expect(store.state == .failed("13 is unlucky"), "13 is an error")
        checks.expect(await outputs.next() == .gaveUp, "the output is gaveUp")
        try await reset()
        checks.expect(store.state == .idle, "it is idle again")
    }

    static func script<R: Reducer>(_ checks: Checks, _ store: Store<R>) async throws
    where R.State == State, R.Output == Output, R.Input == Input {
        try await script(checks, store) { number in
            let sent = store.send(.load(number))
            try await sent.settled()
            try await sent.finished()
        } reset: {
            try await store.send(.reset).settled()
        }
    }
}

/// State and effects in one class.
final class SimpleNumbers: OpenStore<Numbers.State, Numbers.Output>, @unchecked Sendable {
    init() { super.init(.idle) }

    func load(_ number: Int) async {
        modify(.loading)
        switch await Numbers.feedback(for: number) {
        case .loaded(let number):
            modify(.loaded(number))
            send(output: .done)
        case .failed(let message):
            modify(.failed(message))
            send(output: .gaveUp)
        }
    }

    func reset() { modify(.idle) }
}

/// How states follow each other; how to load is a parameter.
struct NumbersReducer: Reducer {
    let load: @Sendable (Int) -> Effect<Numbers.Feedback, Numbers.Output>

    func reduce(
        _ message: Message<Numbers.Input, Numbers.Feedback>,
        into state: inout Numbers.State
    ) -> Effect<Numbers.Feedback, Numbers.Output> {
        switch message {
        case .input(.load(let number)):
            state = .loading
            return load(number)
        case .input(.reset):
            state = .idle
            return .none
        case .feedback(.loaded(let number)):
            state = .loaded(number)
            return .output(.done)
        case .feedback(.failed(let message)):
            state = .failed(message)
            return .output(.gaveUp)
        }
    }

    /// An effect as a closure.
    static let closures = NumbersReducer { number in
        .run { send in send(await Numbers.feedback(for: number)) }
    }

    /// An effect as a value, for a handler.
    static let values = NumbersReducer { .perform(Request(number: $0), with: Handler()) }

    struct Request: Hashable, Sendable { let number: Int }

    struct Handler: EffectHandler {
        func perform(_ request: Request, _ send: Send<Numbers.Feedback>) async {
            send(await Numbers.feedback(for: request.number))
        }
    }

    /// An effect as an object.
    static let objects = NumbersReducer { .run(LoadOperation(number: $0)) }

    struct LoadOperation: EffectOperation {
        let number: Int

        func run(_ send: Send<Numbers.Feedback>) async {
            send(await Numbers.feedback(for: number))
        }
    }
}

extension Example {
    static let numbersSimple = Example(
        name: "numbers-simple",
        summary: "a store without a reducer: state and effects in one class"
    ) { checks in
        let store = SimpleNumbers()
        try await Numbers.script(checks, store) {
            await store.load($0)
        } reset: {
            store.reset()
        }
    }

    static let numbersReducer = Example(
        name: "numbers-reducer",
        summary: "a store with Reducer, Feedback and Effect: the same script, and two kinds of test"
    ) { checks in
        try await Numbers.script(checks, Store(.idle, reducer: NumbersReducer.closures))
        let store = TestStore(.idle, reducer: NumbersReducer.closures)
        try await store.send(.load(3)) { $0 = .loading }
        try await store.receive(.loaded(9)) { $0 = .loaded(9) }
        try await store.receive(output: .done)
        try await store.finish()
        checks.expect(true, "each message, state and output was as the test expects")
        let outcomes = OutcomeTestStore(.idle, reducer: NumbersReducer.closures)
        await outcomes.send(.load(3))
        try await outcomes.expect(.state(.loading), .state(.loaded(9)), .output(.done))
        try await outcomes.finish()
        checks.expect(true, "so were the states and outputs alone")
    }

    static let effectStyles = Example(
        name: "effect-styles",
        summary: "effects as closures, as values for a handler, as objects: one script for all"
    ) { checks in
        let styles = [
            ("closures", NumbersReducer.closures), ("values", .values), ("objects", .objects),
        ]
        for (name, reducer) in styles {
            print("  \(name)")
            try await Numbers.script(checks, Store(.idle, reducer: reducer))
        }
    }

    static let whyDidItChange = Example(
        name: "why-did-it-change",
        summary: "each change names the message that made it"
    ) { checks in
        let container = MonitoredState(Numbers.State.idle, key: "numbers")
        let reasons = StateLock<[String]>([])
        let observation = container.observe(on: .inline, initial: false) { change in
            print("  \(change.old) -> \(change.new) because of \(change.cause.reason)")
            reasons.withLock { $0.append(change.cause.reason) }
        }
        let store = Store(container, reducer: NumbersReducer.closures)
        try await store.send(.load(2)).finished()
        try await store.send(.reset).settled()
        observation.cancel()
        checks.expect(
            reasons.withLock { $0 } == ["load", "loaded", "reset"],
            "the reasons are load, loaded and reset"
        )
    }
}
