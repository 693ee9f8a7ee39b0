import StateContainers
public import StateStore

/// A store whose messages, states and outputs a test goes through one by one.
///
/// ```swift
/// let store = TestStore(Numbers.State.idle, reducer: Numbers(), clock: clock)
/// try await store.send(.load) { $0 = .loading }
/// try await store.receive(.loaded(5)) { $0 = .loaded(5) }
/// try await store.receive(output: .done)
/// try await store.finish()
/// ```
///
/// What is not as said throws a ``TestFailure``, which shows the difference. One task at a time.
public final class TestStore<R: Reducer>: Sendable where R.State: Equatable {
    private typealias Step = (message: Message<R.Input, R.Feedback>, state: R.State)

    private struct Log: Sendable {
        /// What was handled and not gone through.
        var steps: [Step] = []
        var outputs: [R.Output] = []
        var sent: [Sent] = []
    }

    /// The store.
    public let store: Store<R>
    private let log: MonitoredState<Log, Never>
    /// The state up to which the test has gone.
    private let seen: MonitoredState<R.State, Never>
    private let listening: any AnyObject & Sendable
    private let timeout: Duration

    /// A store of a test.
    ///
    /// - Parameters:
    ///   - state: The first state.
    ///   - reducer: What is tested.
    ///   - clock: What its effects wait by, mostly a ``TestClock``.
    ///   - timeout: How long ``receive(_:_:)`` waits, by the clock on the wall.
    public init(
        _ state: R.State,
        reducer: R,
        clock: any Clock<Duration> = ContinuousClock(),
        timeout: Duration = .seconds(10)
    ) {
        let log = MonitoredState<Log, Never>(Log(), key: "test-store")
        let home = MonitoredState<R.State, Never>(state, key: "store")
        store = Store(in: home, reducer: reducer, clock: clock) { message, state in
            log.modify { $0.steps.append((message, state)) }
        }
        listening = store.outputStream.observe { output in
            log.modify { $0.outputs.append(output) }
        }
        self.log = log
        self.timeout = timeout
        seen = MonitoredState(state, key: "test-store-seen")
    }

    /// Sends `input` and goes through what it changes.
    ///
    /// - Parameters:
    ///   - input: The message.
    ///   - change: Makes the expected state of the one before.
    /// - Throws: ``TestFailure``, where a feedback before it was not gone through, or the state is another.
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

    /// Waits for a feedback and goes through what it changes.
    ///
    /// - Throws: ``TestFailure``, where none comes in time, another comes, or the state is another.
    public func receive(
        _ feedback: R.Feedback,
        _ change: (inout R.State) -> Void = { _ in }
    ) async throws where R.Feedback: Equatable {
        let step = try await nextStep("feedback \(feedback)")
        guard case .feedback(let actual) = step.message, actual == feedback else {
            throw TestFailure("another message came", expected: feedback, actual: step.message)
        }
        try check(step.state, after: "feedback \(feedback)", change)
    }

    /// Waits for an output.
    ///
    /// - Throws: ``TestFailure``, where none comes in time, or another does.
    public func receive(output: R.Output) async throws where R.Output: Equatable {
        let actual = try await next("output \(output)") { log in
            log.outputs.isEmpty ? nil : log.outputs.removeFirst()
        }
        guard actual == output else {
            throw TestFailure("another output came", expected: output, actual: actual)
        }
    }

    /// Waits until all effects have ended.
    ///
    /// - Throws: ``TestFailure``, where one goes on too long, or a message or an output was not gone through.
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
                throw TestFailure("effects go on after \(timeout)")
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
            throw TestFailure("\(what) did not come within \(timeout)")
        }
        // One task goes through the log: what was first is.
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
            throw TestFailure("another state after \(what)", expected: expected, actual: actual)
        }
    }
}
