public import StateContainers

/// The states of a store: the current one, then always the latest.
///
/// The sequence never throws, and ends only when its task is cancelled. Each iterator has one slot.
/// If states are `Equatable`, a state equal to the one before is skipped.
public struct StoreStates<State: Sendable>: AsyncSequence, Sendable {
    /// A state.
    public typealias Element = State
    /// Never throws.
    public typealias Failure = Never

    private let join: @Sendable (StreamSlot) -> Membership
    /// The state after a change.
    private let read: @Sendable (ChangeRecord) -> State

    /// Makes a sequence of the values of a container.
    public init(_ values: StateValues<State>) {
        self.init(joining: values.join) { StateChange($0).new }
    }

    private init(
        joining join: @escaping @Sendable (StreamSlot) -> Membership,
        read: @escaping @Sendable (ChangeRecord) -> State
    ) {
        self.join = join
        self.read = read
    }

    /// The states converted by `view`; equal ones are not repeated.
    public func mapped<Other>(
        _ view: @escaping @Sendable (State) -> Other
    ) -> StoreStates<Other> {
        StoreStates<Other>(joining: join) { [read] in view(read($0)) }
    }

    /// Begins with the current state.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(join, read) }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let slot = StreamSlot()
        private let membership: Membership
        private let read: @Sendable (ChangeRecord) -> State
        private var last: State?

        init(
            _ join: (StreamSlot) -> Membership,
            _ read: @escaping @Sendable (ChangeRecord) -> State
        ) {
            membership = join(slot)
            self.read = read
        }

        /// Returns the latest state; waits if that was already returned.
        ///
        /// Returns nil if the task is cancelled.
        public mutating func next() async -> State? { await next(isolation: nil) }

        /// Returns the latest state; waits if that was already returned.
        ///
        /// Returns nil if the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> State? {
            while let state = await slot.next(isolation: actor).map(read) {
                if let last, areEqual(last, state) { continue }
                last = state
                return state
            }
            return nil
        }
    }
}
