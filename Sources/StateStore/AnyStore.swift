/// A store, or a part of one, whatever its reducer.
///
/// It keeps the store.
@dynamicMemberLookup
public final class AnyStore<State: Sendable, Input: Sendable, Output: Sendable>: StoreType {
    private let read: @Sendable () -> State
    private let states: StoreStates<State>
    private let outputs: @Sendable () -> StoreOutputs<Output>
    private let put: @Sendable (Input) -> Sent

    fileprivate init(
        read: @escaping @Sendable () -> State,
        states: StoreStates<State>,
        outputs: @escaping @Sendable () -> StoreOutputs<Output>,
        put: @escaping @Sendable (Input) -> Sent
    ) {
        self.read = read
        self.states = states
        self.outputs = outputs
        self.put = put
    }

    /// The store itself.
    public convenience init<R: Reducer>(
        _ store: Store<R>
    ) where R.State == State, R.Input == Input, R.Output == Output {
        self.init(
            read: { store.state },
            states: store.stateStream,
            outputs: { store.outputStream },
            put: { store.send($0) }
        )
    }

    /// The state of now.
    public var state: State { read() }

    /// A part of the state of now.
    public subscript<Field>(dynamicMember path: KeyPath<State, Field>) -> Field {
        state[keyPath: path]
    }

    /// The current state, then always the latest; equal ones are not repeated.
    public var stateStream: StoreStates<State> { states }

    /// The outputs from this access on.
    public var outputStream: StoreOutputs<Output> { outputs() }

    /// Sends `input` to the store.
    @discardableResult
    public func send(_ input: Input) -> Sent { put(input) }

    /// A part of it, as a store whose stream gives only what changes that part.
    public func scope<Part: Equatable & Sendable, PartInput: Sendable>(
        state path: any KeyPath<State, Part> & Sendable,
        input: @escaping @Sendable (PartInput) -> Input
    ) -> AnyStore<Part, PartInput, Output> {
        AnyStore<Part, PartInput, Output>(
            read: { [read] in read()[keyPath: path] },
            states: states.mapped { $0[keyPath: path] },
            outputs: outputs,
            put: { [put] in put(input($0)) }
        )
    }
}

extension Store {
    /// A part of it, as a store: who follows its stream wakes only when that part changes.
    ///
    /// - Parameters:
    ///   - path: The way to the part; what it runs may touch no container.
    ///   - input: What is sent to the part, in the words of the whole.
    /// - Returns: The part; it keeps the store.
    public func scope<Part: Equatable & Sendable, PartInput: Sendable>(
        state path: any WritableKeyPath<R.State, Part> & Sendable,
        input: @escaping @Sendable (PartInput) -> R.Input
    ) -> AnyStore<Part, PartInput, R.Output> {
        AnyStore<Part, PartInput, R.Output>(
            read: { self.home.withValue { $0[keyPath: path] } },
            states: home.part(path),
            outputs: { self.outputStream },
            put: { self.send(input($0)) }
        )
    }
}
