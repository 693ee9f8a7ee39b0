import StateContainers

/// A store to subclass, without a reducer: its methods modify ``state`` and send outputs.
///
/// ```swift
/// final class Counter: OpenStore<Int, String>, @unchecked Sendable {
///     func increment() {
///         if modify({ $0 += 1; return $0 == 10 }) { send(output: "ten") }
///     }
/// }
/// ```
///
/// Stored properties are constant and guard themselves: the proof of `@unchecked Sendable`. A
/// subclass must guard the state that it adds.
open class OpenStore<State: Sendable, Output: Sendable>: StoreType, @unchecked Sendable {
    private final let container: MonitoredState<State, Never>
    private final let hub = OutputHub<Output>()

    /// Makes a store with an initial state.
    public init(_ state: State) { container = MonitoredState(state, key: "store") }

    /// The current state.
    ///
    /// It has no setter, because `state += 1` by two threads would lose one of the changes.
    public final var state: State { container.value }

    /// Replaces the state.
    public final func modify(_ newState: State) { container.modify(newState) }

    /// Changes the state in one step; `body` must not use any store or container.
    ///
    /// - Returns: What `body` returned.
    @discardableResult
    public final func modify<R>(_ body: (inout State) -> R) -> R { container.modify(body) }

    /// Delivers `output` once, to whoever is listening.
    public final func send(output: Output) { hub.send(output) }

    /// The current state, then always the latest; equal ones are not repeated.
    public final var stateStream: StoreStates<State> { StoreStates(container.values) }

    /// The outputs from this access on.
    public final var outputStream: StoreOutputs<Output> { StoreOutputs(hub) }
}
