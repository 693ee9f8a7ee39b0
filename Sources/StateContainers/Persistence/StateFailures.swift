public import StateEngine

/// Failures of a container that no call could throw: the present one, if there is one, then always
/// the latest.
///
/// The sequence never throws, and ends only when its task is cancelled. Each iterator has one slot
/// and keeps the value followed, as a container does: of the failures between two calls of `next`,
/// it returns the last.
public struct StateFailures: AsyncSequence, Sendable {
    /// A failure; the message names the key.
    public typealias Element = StateError
    /// Never throws.
    public typealias Failure = Never

    /// Without nils.
    let latest: StateValues<StateError?>

    /// Begins with the present failure.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(latest: latest.makeAsyncIterator())
    }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var latest: StateValues<StateError?>.AsyncIterator

        /// Returns the latest failure; waits if that was already returned.
        ///
        /// Returns nil if the task is cancelled.
        public mutating func next() async -> StateError? {
            await next(isolation: #isolation)
        }

        /// Returns the latest failure; waits if that was already returned.
        ///
        /// Returns nil if the task is cancelled.
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

/// Skips the end of a failure, so that it does not replace a failure not yet returned.
final class FailureReceiver: Receiver {
    private let slot: StreamSlot

    init(_ slot: StreamSlot) { self.slot = slot }

    func put(_ change: ChangeRecord) {
        if StateChange<StateError?>(change).new != nil { slot.put(change) }
    }
}
