public import StateEngine

/// What went wrong with a container that no call could be told of: the present failure, where there is one, then always the
/// latest.
///
/// It never fails, and ends only where its task is cancelled. Each iterator has one slot: failures that come while it is not asked are
/// skipped, but for the last.
public struct StateFailures: AsyncSequence, Sendable {
    /// What went wrong; the message names the key.
    public typealias Element = StateError
    /// None.
    public typealias Failure = Never

    /// No nil among them.
    let latest: StateValues<StateError?>

    /// Begins with the failure of now.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(latest: latest.makeAsyncIterator())
    }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var latest: StateValues<StateError?>.AsyncIterator

        /// The latest failure, waited for where it was given before; nil where the task was cancelled.
        public mutating func next() async -> StateError? {
            await next(isolation: #isolation)
        }

        /// The latest failure, waited for where it was given before; nil where the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> StateError? {
            while let failure = await latest.next(isolation: actor) {
                if let failure { return failure }
            }
            return nil
        }
    }
}

/// Passes over that a failure is no more, lest it take the place of one that was not given yet.
final class FailureReceiver: Receiver {
    private let slot: StreamSlot

    init(_ slot: StreamSlot) { self.slot = slot }

    func put(_ change: ChangeRecord) {
        if StateChange<StateError?>(change).new != nil { slot.put(change) }
    }
}
