/// The changes of a container: each one, or one merged change that counts those it skipped.
///
/// The sequence never throws, and ends only when its task is cancelled. Each iterator retains the
/// container and buffers as many changes as requested. When the buffer is full, new changes are
/// merged with the last one, whose ``StateChange/skipped`` counts them.
public struct StateChanges<Value: Sendable>: AsyncSequence, Sendable {
    /// A change.
    public typealias Element = StateChange<Value>
    /// Never throws.
    public typealias Failure = Never

    /// The largest buffer of an iterator.
    public static var bufferLimit: Int { 65_536 }

    let buffer: Int
    let join: @Sendable (StreamSlot) -> Membership

    init(buffer: Int, join: @escaping @Sendable (StreamSlot) -> Membership) {
        guard (1...Self.bufferLimit).contains(buffer) else {
            fatalError(
                "the buffer must hold 1 to \(Self.bufferLimit) changes, not \(buffer)"
            )
        }
        self.buffer = buffer
        self.join = join
    }

    /// Begins with the changes from now on, or after the requested revision.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer, join: join) }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let slot: StreamSlot
        private let membership: Membership

        init(_ buffer: Int, join: (StreamSlot) -> Membership) {
            slot = StreamSlot(limit: buffer)
            membership = join(slot)
        }

        /// Returns the next change, after waiting for it if necessary; nil if the task is
        /// cancelled.
        public mutating func next() async -> StateChange<Value>? { await next(isolation: nil) }

        /// Returns the next change, after waiting for it if necessary; nil if the task is
        /// cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> StateChange<Value>? {
            await slot.next(isolation: actor).map { StateChange($0) }
        }
    }
}
