public import StateStore

/// A store of which a test checks only what others see: its states and outputs, in their order.
///
/// ```swift
/// let store = OutcomeTestStore(.idle, reducer: Numbers())
/// await store.send(.load)
/// try await store.expect(.state(.loading), .state(.loaded(5)), .output(.done))
/// try await store.finish()
/// ```
///
/// How the reducer and its effects come there is not part of the test, so it stays as it is when
/// they are written in another way. Equal states in a row count once. A ``TestStore`` checks each
/// message.
///
/// Failures are reported as those of a ``TestStore``, and the order is as certain as there. Only
/// one task may use the store, on any actor.
public final class OutcomeTestStore<R: Reducer>: Sendable
where R.State: Equatable, R.Output: Equatable {
    /// What others see of a store.
    public enum Outcome: Sendable, Equatable, CustomStringConvertible {
        /// The state after a message, if it changed.
        case state(R.State)
        /// An output.
        case output(R.Output)

        /// The kind and the value.
        public var description: String {
            switch self {
            case .state(let state): "state \(state)"
            case .output(let output): "output \(String(reflecting: output))"
            }
        }
    }

    private let recording: StoreRecording<R, Outcome>

    /// The store.
    public var store: Store<R> { recording.store }

    /// Makes a store for a test.
    ///
    /// The initial state is no outcome. `clock` is for delays in effects, usually a ``TestClock``;
    /// by default it is that of `StateDependencies`. `timeout` says how long to wait for an outcome
    /// or the end of the effects, in real time.
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
        recording = StoreRecording(
            state,
            reducer: reducer,
            clock: clock,
            timeout: timeout,
            at: CallSite(fileID, filePath, line, column),
            step: { _, old, new in old == new ? nil : .state(new) },
            output: { .output($0) }
        )
    }

    /// Sends `input`.
    ///
    /// Waits before and afterwards until the effects have ended, sleep on a ``TestClock``, or have
    /// done nothing that can be seen for 0.1 s.
    public nonisolated(nonsending) func send(_ input: R.Input) async {
        // Both throw only if the task is cancelled, and so does the next call.
        try? await recording.rest()
        _ = recording.send(input)
        try? await recording.rest()
    }

    /// Waits for the next states and outputs.
    ///
    /// - Throws: ``TestFailure``, if one of them does not arrive in time, or another one does.
    public nonisolated(nonsending) func expect(
        _ outcomes: Outcome...,
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws {
        let site = CallSite(fileID, filePath, line, column)
        for (place, expected) in outcomes.enumerated() {
            let actual = try await recording.next("\(expected)", at: site) { events in
                events.isEmpty ? nil : events.removeFirst()
            }
            if actual == expected { continue }
            let rest = outcomes.count - place - 1
            let found = outcomes[..<place] + [actual] + recording.unchecked.prefix(rest)
            let message = difference(
                "unexpected \(actual)",
                expected: outcomes,
                actual: Array(found)
            )
            throw recording.failure(message, at: site)
        }
    }

    /// Waits until all effects have ended.
    ///
    /// A test whose effects run operations ends with this call.
    ///
    /// - Throws: ``TestFailure``, if an effect runs too long, or a state or an output was not
    ///   expected.
    public nonisolated(nonsending) func finish(
        fileID: String = #fileID,
        filePath: String = #filePath,
        line: Int = #line,
        column: Int = #column
    ) async throws {
        try await recording.finish(at: CallSite(fileID, filePath, line, column))
    }
}
