public import Observation
public import StateContainers

/// A store of the main actor to subclass, without a reducer: its methods change ``state`` and send
/// outputs.
///
/// ```swift
/// final class Counter: MainActorStore<Counter.State, String> {
///     struct State: Sendable { var count = 0 }
///
///     func increment() {
///         self.count += 1
///         if self.count == 10 { send(output: "ten") }
///     }
/// }
/// ```
///
/// Only code of the main actor changes it, so `self.count += 1` and `state = .loading` lose nothing,
/// and a subclass need not guard what it adds. Any thread may read ``state`` and the streams. For the Observation library,
/// each property is tracked by itself.
@MainActor
@dynamicMemberLookup
open class MainActorStore<State: Sendable, Output: Sendable>: MainActorStoreType {
    nonisolated private let core: StoreCore<State, Output>

    /// Makes a store with an initial state.
    public init(_ state: State) { core = StoreCore(state) }

    /// The current state; code of the main actor may also assign it.
    nonisolated public final var state: State { core.container.observedValue(\.self) }

    /// A part of the current state.
    public final subscript<Part>(
        dynamicMember path: any WritableKeyPath<State, Part> & Sendable
    ) -> Part {
        get { core.container.observedValue(path) }
        set { core.container.modify { $0[keyPath: path] = newValue } }
    }

    /// A part of the current state.
    nonisolated public final subscript<Part>(
        dynamicMember path: any KeyPath<State, Part> & Sendable
    ) -> Part { core.container.observedValue(path) }

    /// Replaces the state.
    public final func set(_ newState: State) { core.container.set(newState) }

    /// Changes the state in one step; `body` must not use any store or container.
    ///
    /// - Returns: What `body` returned.
    @discardableResult
    public final func modify<R>(_ body: (inout State) -> R) -> R { core.container.modify(body) }

    /// A binding to a part of the state.
    public final func binding<Part: Sendable>(
        _ path: any WritableKeyPath<State, Part> & Sendable
    ) -> StateBinding<Part> {
        core.container.binding(path)
    }

    /// Delivers `output` once, to whoever is listening.
    public final func send(output: Output) { core.outputs.send(output) }

    /// The current state, then always the latest; equal ones are not repeated.
    nonisolated public final var stateStream: StoreStates<State> {
        StoreStates(core.container.values)
    }

    /// The outputs from this access on.
    nonisolated public final var outputStream: StoreOutputs<Output> { StoreOutputs(core.outputs) }
}

extension MainActorStore: Observable {}

/// A store whose state is assigned by code of the main actor: ``MainActorStore``.
///
/// Swift has no property that any thread may read and only an actor may assign. So there are two with
/// the name `state`, and the compiler takes that of this protocol where the other cannot be assigned.
public protocol MainActorStoreType: StoreType {
    /// Replaces the state.
    @MainActor func set(_ newState: State)
}

extension MainActorStoreType {
    /// The state: `state = .loading`.
    @_disfavoredOverload
    @MainActor public var state: State {
        get { self.state }
        set { set(newValue) }
    }
}

/// The state and the outputs of a store without a reducer.
struct StoreCore<State: Sendable, Output: Sendable>: Sendable {
    let container: MonitoredState<State>
    let outputs = OutputHub<Output>()

    init(_ state: State) { container = MonitoredState(state, key: "store") }
}
