/// A reducer made of a closure.
public struct Reduce<State: Sendable, Input: Sendable, Feedback: Sendable, Output: Sendable>:
    Reducer
{
    private let body: @Sendable (Message<Input, Feedback>, inout State) -> Effect<Feedback, Output>

    /// Makes a reducer from `body`, which must have no side effects.
    public init(
        _ body:
            @escaping @Sendable (Message<Input, Feedback>, inout State) -> Effect<
                Feedback, Output
            >
    ) {
        self.body = body
    }

    /// Changes `state` in response to `message`, and returns the effects to perform.
    public func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output> {
        body(message, &state)
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
        Reduce { message, state in
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
        let inner: Message<Part.Input, Part.Feedback>? =
            switch message {
            case .input(let whole): input(whole).map { .input($0) }
            case .feedback(let whole): feedback(whole).map { .feedback($0) }
            }
        guard let inner else { return .none }
        return part.reduce(inner, into: &state[keyPath: path])
            .map(feedback: wholeFeedback, output: output)
    }
}
