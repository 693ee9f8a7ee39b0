/// The view's side of a model: a state to show, and inputs to report what the user did.
public protocol ViewModel<State, Input>: AnyObject, Sendable {
    /// What the view shows.
    associatedtype State: Sendable
    /// What the view reports.
    associatedtype Input: Sendable

    /// The current state to show.
    var state: State { get }
    /// The current state to show, then always the latest.
    var stateStream: StoreStates<State> { get }
    /// Reports what the user did in the view.
    func trigger(_ input: Input)
}

/// A view model of any type, so that the view does not depend on the real one.
@dynamicMemberLookup
public final class AnyViewModel<State: Sendable, Input: Sendable>: ViewModel {
    private let read: @Sendable () -> State
    private let states: @Sendable () -> StoreStates<State>
    private let put: @Sendable (Input) -> Void

    /// Wraps a view model.
    public init(_ model: some ViewModel<State, Input>) {
        read = { model.state }
        states = { model.stateStream }
        put = { model.trigger($0) }
    }

    /// Makes a view model of a store.
    ///
    /// The view sees only what `view` returns, not the store's state.
    ///
    /// - Parameters:
    ///   - store: The store; it is retained.
    ///   - view: Converts the store's state to the view's.
    ///   - input: Converts the view's inputs to the store's.
    public init<R: Reducer>(
        _ store: Store<R>,
        view: @escaping @Sendable (R.State) -> State,
        input: @escaping @Sendable (Input) -> R.Input
    ) {
        read = { view(store.state) }
        states = { store.stateStream.mapped(view) }
        put = { store.send(input($0)) }
    }

    /// The current state to show.
    public var state: State { read() }

    /// A part of the current state to show.
    public subscript<Field>(dynamicMember path: KeyPath<State, Field>) -> Field {
        state[keyPath: path]
    }

    /// The current state to show, then always the latest; equal ones are not repeated.
    public var stateStream: StoreStates<State> { states() }

    /// Reports what the user did in the view.
    public func trigger(_ input: Input) { put(input) }
}
