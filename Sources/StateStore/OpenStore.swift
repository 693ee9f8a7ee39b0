public import Observation
public import StateContainers

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
/// Any thread may call it; ``MainActorStore`` is for the main actor alone. For the Observation
/// library, each property that is read is tracked by itself.
///
/// Stored properties are constant and guard themselves: the proof of `@unchecked Sendable`. A
/// subclass must guard the state that it adds.
@dynamicMemberLookup
open class OpenStore<State: Sendable, Output: Sendable>: StoreType, Observable,
    @unchecked Sendable
{
    private final let core: StoreCore<State, Output>

    /// Makes a store with an initial state.
    public init(_ state: State) { core = StoreCore(state) }

    /// The current state.
    ///
    /// It has no setter, because `state += 1` by two threads would lose one of the changes.
    public final var state: State { core.container.observedValue(\.self) }

    /// A part of the current state.
    public final subscript<Part>(dynamicMember path: any KeyPath<State, Part> & Sendable) -> Part {
        core.container.observedValue(path)
    }

    /// Replaces the state.
    public final func set(_ newState: State) { core.container.set(newState) }

    /// Replaces the state: ``set(_:)``, by the name that the patterns use.
    public final func modify(_ newState: State) { set(newState) }

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
    public final var stateStream: StoreStates<State> { StoreStates(core.container.values) }

    /// The outputs from this access on.
    public final var outputStream: StoreOutputs<Output> { StoreOutputs(core.outputs) }
}
