/// The values of a container: the current one, then always the latest.
///
/// It never fails, and ends only where its task is cancelled. Each iterator has one slot and keeps the container: values that come
/// while it is not asked are skipped, but for the last. When no iterator is left a change costs nothing for it.
public struct StateValues<Value: Sendable>: AsyncSequence, Sendable {
    /// A value.
    public typealias Element = Value
    /// None.
    public typealias Failure = Never

    package let join: @Sendable (StreamSlot) -> Membership

    /// Begins with the value of now.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(join: join) }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let slot = StreamSlot()
        private let membership: Membership

        init(join: (StreamSlot) -> Membership) { membership = join(slot) }

        /// The latest value, waited for where it was given before; nil where the task was cancelled.
        public mutating func next() async -> Value? { await next(isolation: nil) }

        /// The latest value, waited for where it was given before; nil where the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> Value? {
            await slot.next(isolation: actor).map { StateChange($0).new }
        }
    }
}
