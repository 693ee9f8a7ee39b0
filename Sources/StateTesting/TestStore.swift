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
/// What differs is a ``TestFailure`` at the line of the call. What the test has not checked when
/// the store is released is one at the line that made it, and so are effects that
/// `finish()` did not wait for. (Where Swift Testing does not run the test, this ends the process.)
///
/// The order is the same in each run. A call returns when the effects have ended, sleep on a
/// ``TestClock``, or have done nothing that can be seen for 0.1 s; `send` begins so, too.
///
/// Only one task may use the store, on any actor. To check states and outputs alone, use an
/// ``OutcomeTestStore``.
public final class TestStore<R: Reducer>: Sendable where R.State: Equatable {
    private typealias Step = (message: Message<R.Input, R.Feedback>, state: R.State)

    private enum Event: Sendable, CustomStringConvertible {
        case handled(Message<R.Input, R.Feedback>, R.State)
        case output(R.Output)

        var description: String {
            switch self {
            case .handled(.input(let input), _): "input \(input)"
            case .handled(.feedback(let feedback), _): "feedback \(feedback)"
            case .output(let output): "output \(String(reflecting: output))"
            }
        }

        var isHandled: Bool { if case .handled = self { true } else { false } }
    }

    private let recording: StoreRecording<R, Event>
    /// The state that the test has checked last.
    private let seen: StateLock<R.State>

    /// The store.
    public var store: Store<R> { recording.store }

    /// Makes a store for a test.
    ///
    /// `clock` is for delays in effects, usually a ``TestClock``; by default it is that of
    /// `StateDependencies`. `timeout` says how long to wait for feedback, an output or the end of
    /// the effects, in real time.
    public init(
        _ state: R.State,
        reducer: R,
        clock: any Clock<Duration> = StateDependencies.current.clock,
        timeout: Duration = .seconds(10),
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) {
        seen = StateLock(state)
        recording = StoreRecording(
            state,
            reducer: reducer,
            clock: clock,
            timeout: timeout,
            at: CallSite(fileID, filePath, line, column),
            step: { message, _, state in .handled(message, state) },
            output: { .output($0) }
        )
    }

    /// Sends `input` and checks the state after it; `change` makes it of the state before.
    ///
    /// - Throws: ``TestFailure``, if an earlier feedback was not received, or the state differs.
    public nonisolated(nonsending) func send(
        _ input: R.Input,
        _ change: (inout R.State) -> Void = { _ in },
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws {
        let site = CallSite(fileID, filePath, line, column)
        try await recording.rest()
        if let first = recording.unchecked.first(where: \.isHandled) {
            throw recording.failure(
                "input \(input) cannot be sent before the test receives \(first)",
                at: site
            )
        }
        do {
            try await recording.send(input).settled()
        } catch {
            if Task.isCancelled { throw error }
            throw recording.failure("input \(input) was refused: \(error)", at: site)
        }
        let step = try await nextStep("input \(input)", at: site)
        guard case .input = step.message else {
            let event = Event.handled(step.message, step.state)
            throw recording.failure("\(event) was handled before input \(input)", at: site)
        }
        try check(step.state, after: "input \(input)", change, at: site)
        try await recording.rest()
    }

    /// Waits for a feedback and checks the state after it; `change` makes it of the state before.
    ///
    /// - Throws: ``TestFailure``, if none arrives in time, another message arrives, or the state
    ///   differs.
    public nonisolated(nonsending) func receive(
        _ feedback: R.Feedback,
        _ change: (inout R.State) -> Void = { _ in },
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws where R.Feedback: Equatable {
        let site = CallSite(fileID, filePath, line, column)
        try await receive("feedback \(feedback)", change, at: site) { actual in
            if actual == feedback { return nil }
            return difference("unexpected feedback", expected: feedback, actual: actual)
        }
    }

    /// Waits for a feedback that satisfies a condition; otherwise as for an Equatable one.
    ///
    /// - Throws: ``TestFailure``, if none arrives in time, another message arrives, or the state
    ///   differs.
    public nonisolated(nonsending) func receive(
        where isExpected: (R.Feedback) -> Bool,
        _ change: (inout R.State) -> Void = { _ in },
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws {
        let site = CallSite(fileID, filePath, line, column)
        try await receive("a feedback that satisfies the condition", change, at: site) { actual in
            isExpected(actual) ? nil : "feedback \(actual) does not satisfy the condition"
        }
    }

    /// Waits for a feedback of one case, whatever its payload; otherwise as for an Equatable one.
    ///
    /// ```swift
    /// extension Feedback {
    ///     var loaded: Int? { if case .loaded(let number) = self { number } else { nil } }
    /// }
    /// try await store.receive(\.loaded) { $0 = .loaded(5) }
    /// ```
    ///
    /// - Throws: ``TestFailure``, if none arrives in time, another message arrives, or the state
    ///   differs.
    public nonisolated(nonsending) func receive<Payload>(
        _ payload: KeyPath<R.Feedback, Payload?>,
        _ change: (inout R.State) -> Void = { _ in },
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws {
        let site = CallSite(fileID, filePath, line, column)
        try await receive("a feedback of the expected case", change, at: site) { actual in
            let isExpected = actual[keyPath: payload] != nil
            return isExpected ? nil : "feedback \(actual) is not of the expected case"
        }
    }

    /// Waits for an output.
    ///
    /// - Throws: ``TestFailure``, if none arrives in time, or another one does.
    public nonisolated(nonsending) func receive(
        output: R.Output,
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws where R.Output: Equatable {
        let site = CallSite(fileID, filePath, line, column)
        let what = "output \(String(reflecting: output))"
        let actual = try await recording.next(what, at: site) { events -> R.Output? in
            guard let place = events.firstIndex(where: { !$0.isHandled }),
                case .output(let output) = events.remove(at: place)
            else { return nil }
            return output
        }
        guard actual == output else {
            let message = difference("unexpected output", expected: output, actual: actual)
            throw recording.failure(message, at: site)
        }
    }

    /// Waits until all effects have ended.
    ///
    /// A test whose effects run operations ends with this call.
    ///
    /// - Throws: ``TestFailure``, if an effect runs too long, or a message or an output was not
    ///   received.
    public nonisolated(nonsending) func finish(
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws {
        try await recording.finish(at: CallSite(fileID, filePath, line, column))
    }

    // MARK: Steps

    private nonisolated(nonsending) func receive(
        _ what: String,
        _ change: (inout R.State) -> Void,
        at site: CallSite,
        mismatch: (R.Feedback) -> String?
    ) async throws {
        let step = try await nextStep(what, at: site)
        guard case .feedback(let feedback) = step.message else {
            let event = Event.handled(step.message, step.state)
            throw recording.failure("\(event) was handled before \(what)", at: site)
        }
        if let mismatch = mismatch(feedback) { throw recording.failure(mismatch, at: site) }
        try check(step.state, after: "feedback \(feedback)", change, at: site)
        try await recording.rest()
    }

    private nonisolated(nonsending) func nextStep(
        _ what: String,
        at site: CallSite
    ) async throws -> Step {
        try await recording.next(what, at: site) { events -> Step? in
            guard let place = events.firstIndex(where: \.isHandled),
                case .handled(let message, let state) = events.remove(at: place)
            else { return nil }
            return (message, state)
        }
    }

    private func check(
        _ actual: R.State,
        after what: String,
        _ change: (inout R.State) -> Void,
        at site: CallSite
    ) throws {
        var expected = seen.withLock { $0 }
        change(&expected)
        seen.withLock { $0 = actual }
        guard expected == actual else {
            let sentence = "unexpected state after \(what)"
            let message = difference(sentence, expected: expected, actual: actual)
            throw recording.failure(message, at: site)
        }
    }
}
