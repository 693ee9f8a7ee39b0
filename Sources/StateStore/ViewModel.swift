/// What a view sees of a model: a state to show, and a way to say what was done to it.
public protocol ViewModel<State, Input>: AnyObject, Sendable {
    /// What the view shows.
    associatedtype State: Sendable
    /// What the view says.
    associatedtype Input: Sendable

    /// What to show now.
    var state: State { get }
    /// What to show, now and then always the latest.
    var stateStream: StoreStates<State> { get }
    /// Says what was done in the view.
    func trigger(_ input: Input)
}

/// A view model whatever it is: the view does not know whether it is the real one.
@dynamicMemberLookup
public final class AnyViewModel<State: Sendable, Input: Sendable>: ViewModel {
    private let read: @Sendable () -> State
    private let states: @Sendable () -> StoreStates<State>
    private let put: @Sendable (Input) -> Void

    /// The view model of a view.
    public init(_ model: some ViewModel<State, Input>) {
        read = { model.state }
        states = { model.stateStream }
        put = { model.trigger($0) }
    }

    /// A store as a view model that hides its state: the view sees what `view` makes of it.
    ///
    /// - Parameters:
    ///   - store: What it keeps.
    ///   - view: The state for the view.
    ///   - input: What the view says, in the words of the store.
    public init<R: Reducer>(
        _ store: Store<R>,
        view: @escaping @Sendable (R.State) -> State,
        input: @escaping @Sendable (Input) -> R.Input
    ) {
        read = { view(store.state) }
        states = { store.stateStream.mapped(view) }
        put = { store.send(input($0)) }
    }

    /// What to show now.
    public var state: State { read() }

    /// A part of what to show now.
    public subscript<Field>(dynamicMember path: KeyPath<State, Field>) -> Field {
        state[keyPath: path]
    }

    /// What to show, now and then always the latest; equal ones are not repeated.
    public var stateStream: StoreStates<State> { states() }

    /// Says what was done in the view.
    public func trigger(_ input: Input) { put(input) }
}
