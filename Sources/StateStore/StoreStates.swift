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

    private let makeSource: @Sendable () -> StatesSource<State>

    /// The values of a container as states.
    public init(_ values: StateValues<State>) {
        makeSource = { ValuesSource(values.makeAsyncIterator()) }
    }

    private init(_ makeSource: @escaping @Sendable () -> StatesSource<State>) {
        self.makeSource = makeSource
    }

    /// What `view` makes of each state; equal ones are not repeated.
    public func mapped<Other>(
        _ view: @escaping @Sendable (State) -> Other
    ) -> StoreStates<Other> {
        StoreStates<Other> { MappedSource(makeSource(), view) }
    }

    /// Begins with the state of now.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: makeSource()) }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let source: StatesSource<State>
        private var last: State?

        init(source: StatesSource<State>) { self.source = source }

        /// The latest state, waited for where it was given before; nil where the task was cancelled.
        public mutating func next() async -> State? { await next(isolation: nil) }

        /// The latest state, waited for where it was given before; nil where the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> State? {
            while let state = await source.next(isolation: actor) {
                if let last, areEqual(last, state) { continue }
                last = state
                return state
            }
            return nil
        }
    }
}

/// Where an iterator's states come from.
class StatesSource<State: Sendable> {
    func next(isolation actor: isolated (any Actor)?) async -> State? { nil }
}

private final class ValuesSource<State: Sendable>: StatesSource<State> {
    private let iterator: StateValues<State>.AsyncIterator

    init(_ iterator: StateValues<State>.AsyncIterator) { self.iterator = iterator }

    override func next(isolation actor: isolated (any Actor)?) async -> State? {
        // A copy reads the same slot.
        var iterator = iterator
        return await iterator.next(isolation: actor)
    }
}

private final class MappedSource<Whole: Sendable, State: Sendable>: StatesSource<State> {
    private let source: StatesSource<Whole>
    private let view: @Sendable (Whole) -> State

    init(_ source: StatesSource<Whole>, _ view: @escaping @Sendable (Whole) -> State) {
        self.source = source
        self.view = view
    }

    override func next(isolation actor: isolated (any Actor)?) async -> State? {
        await source.next(isolation: actor).map(view)
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
