/// The values of a container: the current one, then always the latest.
///
/// The sequence never throws, and ends only when its task is cancelled. Each iterator has one slot
/// and retains the container: of the values between two calls of `next`, it returns the last.
/// Without iterators, changes cost nothing extra.
public struct StateValues<Value: Sendable>: AsyncSequence, Sendable {
    /// A value.
    public typealias Element = Value
    /// Never throws.
    public typealias Failure = Never

    package let join: @Sendable (StreamSlot) -> Membership

    /// Begins with the current value.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(join: join) }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let slot = StreamSlot()
        private let membership: Membership

        init(join: (StreamSlot) -> Membership) { membership = join(slot) }

        /// Returns the latest value; waits if that was already returned.
        ///
        /// Returns nil if the task is cancelled.
        public mutating func next() async -> Value? { await next(isolation: nil) }

        /// Returns the latest value; waits if that was already returned.
        ///
        /// Returns nil if the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> Value? {
            await slot.next(isolation: actor).map { StateChange($0).new }
        }
    }
}
