/// The changes of a container: each one, or a gap that is counted.
///
/// It never fails, and ends only where its task is cancelled. Each iterator keeps as many changes as was asked for, and the container;
/// those that come when it is full become one with the last of them, which says in ``StateChange/skipped`` how many they were.
public struct StateChanges<Value: Sendable>: AsyncSequence, Sendable {
    /// A change.
    public typealias Element = StateChange<Value>
    /// None.
    public typealias Failure = Never

    /// The most that an iterator may keep.
    public static var bufferLimit: Int { 65_536 }

    let buffer: Int
    let join: @Sendable (StreamSlot) -> Membership

    init(buffer: Int, join: @escaping @Sendable (StreamSlot) -> Membership) {
        precondition(
            (1...Self.bufferLimit).contains(buffer),
            "a buffer of \(buffer) changes; it has 1 to \(Self.bufferLimit)"
        )
        self.buffer = buffer
        self.join = join
    }

    /// Begins with the changes from now on, or after the revision asked for.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer, join: join) }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let slot: StreamSlot
        private let membership: Membership

        init(_ buffer: Int, join: (StreamSlot) -> Membership) {
            slot = StreamSlot(limit: buffer)
            membership = join(slot)
        }

        /// The next change, waited for; nil where the task was cancelled.
        public mutating func next() async -> StateChange<Value>? { await next(isolation: nil) }

        /// The next change, waited for; nil where the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> StateChange<Value>? {
            await slot.next(isolation: actor).map { StateChange($0) }
        }
    }
}
