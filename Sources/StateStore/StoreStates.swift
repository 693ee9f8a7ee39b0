public import StateContainers

/// The states of a store: the current one, then always the latest.
///
/// It never fails, and ends only where its task is cancelled. Each iterator has one slot. A state that is equal to the one before,
/// where states can be compared, is not given again.
public struct StoreStates<State: Sendable>: AsyncSequence, Sendable {
    /// A state.
    public typealias Element = State
    /// None.
    public typealias Failure = Never

    private let join: @Sendable (StreamSlot) -> Membership
    /// The state that a change leads to.
    private let read: @Sendable (ChangeRecord) -> State

    /// The values of a container as states.
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

    /// What `view` makes of each state; equal ones are not repeated.
    public func mapped<Other>(
        _ view: @escaping @Sendable (State) -> Other
    ) -> StoreStates<Other> {
        StoreStates<Other>(joining: join) { [read] in view(read($0)) }
    }

    /// Begins with the state of now.
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

        /// The latest state, waited for where it was given before; nil where the task was cancelled.
        public mutating func next() async -> State? { await next(isolation: nil) }

        /// The latest state, waited for where it was given before; nil where the task was cancelled.
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

/// Whether two values can be compared and are equal.
func areEqual<Value>(_ left: Value, _ right: Value) -> Bool {
    func isEqual<Comparable: Equatable>(_ left: Comparable) -> Bool {
        (right as? Comparable).map { $0 == left } ?? false
    }
    guard let left = left as? any Equatable else { return false }
    return isEqual(left)
}
