/// A reducer made of a closure.
///
/// As the ``Reducer/body`` of a reducer, it takes its types from there:
///
/// ```swift
/// struct Counter: Reducer {
///     enum Input: Sendable { case add(Int) }
///
///     var body: some Reducer<Int, Input, Never, Never> {
///         Reduce { state, message in
///             if case .input(.add(let amount)) = message { state += amount }
///             return .none
///         }
///     }
/// }
/// ```
public struct Reduce<State: Sendable, Input: Sendable, Feedback: Sendable, Output: Sendable>:
    Reducer
{
    /// Changes the state in response to a message, and returns the effects to perform.
    public typealias Change =
        @Sendable (inout State, Message<Input, Feedback>) -> Effect<Feedback, Output>

    private let change: Change

    /// Makes a reducer from `change`, which must have no side effects.
    public init(_ change: @escaping Change) { self.change = change }

    /// Changes `state` in response to `message`, and returns the effects to perform.
    public func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output> {
        change(&state, message)
    }
}

extension Reducer {
    /// Passes each message to this reducer and then to `other`; their effects start in this order.
    public func combined<Other: Reducer>(
        with other: Other
    ) -> Reduce<State, Input, Feedback, Output>
    where
        Other.State == State,
        Other.Input == Input,
        Other.Feedback == Feedback,
        Other.Output == Output
    {
        Reduce { state, message in
            .merge(reduce(message, into: &state), other.reduce(message, into: &state))
        }
    }
}

/// A reducer of a part, as a reducer of the parent state; it ignores messages that do not concern
/// the part.
public struct Scope<
    State: Sendable,
    Input: Sendable,
    Feedback: Sendable,
    Output: Sendable,
    Part: Reducer
>: Reducer {
    private let path: any WritableKeyPath<State, Part.State> & Sendable
    private let input: @Sendable (Input) -> Part.Input?
    private let feedback: @Sendable (Feedback) -> Part.Feedback?
    private let wholeFeedback: @Sendable (Part.Feedback) -> Feedback
    private let output: @Sendable (Part.Output) -> Output
    private let part: Part

    /// Makes a reducer for a part of a larger state.
    ///
    /// - Parameters:
    ///   - path: The part of the state.
    ///   - input: Extracts the part's input; nil if the input does not concern the part.
    ///   - feedback: Extracts the part's feedback, and converts it back.
    ///   - output: Converts the part's outputs to those of the parent.
    ///   - part: The reducer of the part.
    public init(
        state path: any WritableKeyPath<State, Part.State> & Sendable,
        input: @escaping @Sendable (Input) -> Part.Input?,
        feedback: (
            from: @Sendable (Feedback) -> Part.Feedback?, to: @Sendable (Part.Feedback) -> Feedback
        ),
        output: @escaping @Sendable (Part.Output) -> Output,
        _ part: Part
    ) {
        self.path = path
        self.input = input
        self.feedback = feedback.from
        wholeFeedback = feedback.to
        self.output = output
        self.part = part
    }

    /// Passes the part's messages to its reducer.
    public func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output> {
        let inner = message.part(input, feedback)
        guard let inner else { return .none }
        return part.reduce(inner, into: &state[keyPath: path])
            .map(feedback: wholeFeedback, output: output)
    }
}
