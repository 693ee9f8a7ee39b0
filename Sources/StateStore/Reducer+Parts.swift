/// A reducer made of a closure.
public struct Reduce<State: Sendable, Input: Sendable, Feedback: Sendable, Output: Sendable>:
    Reducer
{
    private let body: @Sendable (Message<Input, Feedback>, inout State) -> Effect<Feedback, Output>

    /// Answers messages with `body`, which only computes.
    public init(
        _ body:
            @escaping @Sendable (Message<Input, Feedback>, inout State) -> Effect<
                Feedback, Output
            >
    ) {
        self.body = body
    }

    /// Changes `state` as `message` asks, and says what is to be done beside.
    public func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output> {
        body(message, &state)
    }
}

extension Reducer {
    /// This reducer and then `other`, both given each message; their effects are begun in this order.
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

/// A reducer of a part as a reducer of the whole; what is not of the part it leaves alone.
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

    /// A piece of a larger reducer.
    ///
    /// - Parameters:
    ///   - path: The part of the state.
    ///   - input: The part's input in one of the whole; nil where it is none of the part.
    ///   - feedback: The part's feedback in one of the whole, and back.
    ///   - output: The part's output in the words of the whole.
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

    /// Has the part answer what is of the part.
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
