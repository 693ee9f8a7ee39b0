/// A store, or a part of one, with any reducer.
///
/// It retains the store.
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

    /// Wraps a store.
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

    /// The current state.
    public var state: State { read() }

    /// A part of the current state.
    public subscript<Field>(dynamicMember path: KeyPath<State, Field>) -> Field {
        state[keyPath: path]
    }

    /// The current state, then always the latest; equal ones are not repeated.
    public var stateStream: StoreStates<State> { states }

    /// The outputs from this access on; see ``Store/outputStream``.
    public var outputStream: StoreOutputs<Output> { outputs() }

    /// Sends `input` to the store; see ``Store/send(_:)``.
    @discardableResult
    public func send(_ input: Input) -> Sent { put(input) }

    /// A part of the store, as a store whose stream reports only changes of that part.
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
    /// A part of the store, as a store: a reader of its stream wakes only when that part changes.
    ///
    /// - Parameters:
    ///   - path: The part; its accessors must not use any container.
    ///   - input: Converts the part's inputs to those of the store.
    /// - Returns: The part; it retains the store.
    public func scope<Part: Equatable & Sendable, PartInput: Sendable>(
        state path: any WritableKeyPath<R.State, Part> & Sendable,
        input: @escaping @Sendable (PartInput) -> R.Input
    ) -> AnyStore<Part, PartInput, R.Output> {
        AnyStore<Part, PartInput, R.Output>(
            read: { self.container.observedValue(path) },
            states: container.part(path),
            outputs: { self.outputStream },
            put: { self.send(input($0)) }
        )
    }
}
