import StateContainers

/// A store to subclass, the simple flavour: its methods set ``state`` and say outputs as they see fit.
///
/// ```swift
/// final class Counter: OpenStore<Int, String>, @unchecked Sendable {
///     func increment() {
///         if modify({ $0 += 1; return $0 == 10 }) { send(output: "ten") }
///     }
/// }
/// ```
///
/// What is stored is constant and guards itself: the proof of `@unchecked Sendable`; a subclass guards what it adds.
open class OpenStore<State: Sendable, Output: Sendable>: StoreType, @unchecked Sendable {
    private final let home: MonitoredState<State, Never>
    private final let hub = OutputHub<Output>()

    /// A store in its first state.
    public init(_ state: State) { home = MonitoredState(state, key: "store") }

    /// The state of now; to read it and then set it are two steps, ``modify(_:)`` is one.
    public final var state: State {
        get { home.value }
        set { home.modify(newValue) }
    }

    /// Changes the state in one step; the body may touch no store and no container.
    ///
    /// - Returns: What `body` returned.
    @discardableResult
    public final func modify<R>(_ body: (inout State) -> R) -> R { home.modify(body) }

    /// Says `output` to those who listen.
    public final func send(output: Output) { hub.send(output) }

    /// The current state, then always the latest; equal ones are not repeated.
    public final var stateStream: StoreStates<State> { StoreStates(home.values) }

    /// The outputs from this access on.
    public final var outputStream: StoreOutputs<Output> { StoreOutputs(hub) }
}
