import StateContainers
public import StateStore

/// A store whose messages, states and outputs a test checks one by one.
///
/// ```swift
/// let store = TestStore(Numbers.State.idle, reducer: Numbers(), clock: clock)
/// try await store.send(.load) { $0 = .loading }
/// try await store.receive(.loaded(5)) { $0 = .loaded(5) }
/// try await store.receive(output: .done)
/// try await store.finish()
/// ```
///
/// Any difference throws a ``TestFailure``, which shows it. Only one task may use the store.
public final class TestStore<R: Reducer>: Sendable where R.State: Equatable {
    private typealias Step = (message: Message<R.Input, R.Feedback>, state: R.State)

    private struct Log: Sendable {
        /// Handled messages that the test has not checked.
        var steps: [Step] = []
        var outputs: [R.Output] = []
        var sent: [Sent] = []
    }

    /// The store.
    public let store: Store<R>
    private let log: MonitoredState<Log>
    /// The state that the test has checked last.
    private let seen: MonitoredState<R.State>
    private let listening: any AnyObject & Sendable
    private let timeout: Duration

    /// Makes a store for a test.
    ///
    /// - Parameters:
    ///   - state: The initial state.
    ///   - reducer: The reducer to test.
    ///   - clock: The clock for delays in effects, usually a ``TestClock``.
    ///   - timeout: How long ``receive(_:_:)`` waits, in real time.
    public init(
        _ state: R.State,
        reducer: R,
        clock: any Clock<Duration> = ContinuousClock(),
        timeout: Duration = .seconds(10)
    ) {
        let log = MonitoredState<Log>(Log(), key: "test-store")
        let container = MonitoredState<R.State>(state, key: "store")
        store = Store(in: container, reducer: reducer, clock: clock) { message, state in
            log.modify { $0.steps.append((message, state)) }
        }
        listening = store.outputStream.observe { output in
            log.modify { $0.outputs.append(output) }
        }
        self.log = log
        self.timeout = timeout
        seen = MonitoredState(state, key: "test-store-seen")
    }

    /// Sends `input` and checks the state after it.
    ///
    /// - Parameters:
    ///   - input: The message.
    ///   - change: Changes the state before into the expected one.
    /// - Throws: ``TestFailure``, if an earlier feedback was not received, or the state differs.
    public func send(_ input: R.Input, _ change: (inout R.State) -> Void = { _ in }) async throws {
        if let first = log.value.steps.first {
            throw TestFailure(
                "a message was handled that the test did not receive: \(first.message)"
            )
        }
        let sent = store.send(input)
        log.modify { $0.sent.append(sent) }
        let step = try await nextStep("input \(input)")
        guard case .input = step.message else {
            throw TestFailure("\(step.message) was handled before input \(input)")
        }
        try check(step.state, after: "input \(input)", change)
    }

    /// Waits for a feedback and checks the state after it.
    ///
    /// - Throws: ``TestFailure``, if none arrives in time, another one arrives, or the state
    ///   differs.
    public func receive(
        _ feedback: R.Feedback,
        _ change: (inout R.State) -> Void = { _ in }
    ) async throws where R.Feedback: Equatable {
        let step = try await nextStep("feedback \(feedback)")
        guard case .feedback(let actual) = step.message, actual == feedback else {
            throw TestFailure("unexpected message", expected: feedback, actual: step.message)
        }
        try check(step.state, after: "feedback \(feedback)", change)
    }

    /// Waits for an output.
    ///
    /// - Throws: ``TestFailure``, if none arrives in time, or another one does.
    public func receive(output: R.Output) async throws where R.Output: Equatable {
        let actual = try await next("output \(output)") { log in
            log.outputs.isEmpty ? nil : log.outputs.removeFirst()
        }
        guard actual == output else {
            throw TestFailure("unexpected output", expected: output, actual: actual)
        }
    }

    /// Waits until all effects have ended.
    ///
    /// - Throws: ``TestFailure``, if an effect runs too long, or a message or an output was not
    ///   received.
    public func finish() async throws {
        for sent in log.value.sent { try await finish(sent) }
        let rest = log.value
        if !rest.steps.isEmpty || !rest.outputs.isEmpty {
            let messages = rest.steps.map(\.message)
            throw TestFailure(
                "the test did not receive messages \(messages) and outputs \(rest.outputs)"
            )
        }
    }

    private func finish(_ sent: Sent) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await sent.finished()
                return true
            }
            group.addTask { [timeout] in
                try await Task.sleep(for: timeout)
                return false
            }
            defer { group.cancelAll() }
            if try await group.next() != true {
                throw TestFailure("effects still run after \(timeout)")
            }
        }
    }

    // MARK: Steps

    private func nextStep(_ what: String) async throws -> Step {
        try await next(what) { log in log.steps.isEmpty ? nil : log.steps.removeFirst() }
    }

    private func next<Element>(
        _ what: String,
        _ take: (inout Log) -> Element?
    ) async throws -> Element {
        var element: Element?
        do {
            _ = try await log.wait(timeout: timeout) { log in
                var log = log
                element = take(&log)
                return element != nil
            }
        } catch is StateError {
            throw TestFailure("\(what) did not arrive within \(timeout)")
        }
        // Only one task takes from the log, so the first element is unchanged.
        guard let element = log.modify({ take(&$0) }) else {
            throw TestFailure("two tasks use one test store")
        }
        return element
    }

    private func check(
        _ actual: R.State,
        after what: String,
        _ change: (inout R.State) -> Void
    ) throws {
        var expected = seen.value
        change(&expected)
        seen ~> actual
        guard expected == actual else {
            throw TestFailure("unexpected state after \(what)", expected: expected, actual: actual)
        }
    }
}
