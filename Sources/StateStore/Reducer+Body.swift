extension Reducer where Body == Never {
    /// A reducer that implements ``reduce(_:into:)`` has no body.
    public var body: Never { preconditionFailure("\(Self.self) has no body") }
}

extension Reducer
where
    Body: Reducer,
    Body.State == State,
    Body.Input == Input,
    Body.Feedback == Feedback,
    Body.Output == Output
{
    /// Passes the message to the ``body``.
    public func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output> {
        body.reduce(message, into: &state)
    }
}

/// Makes one reducer of several, and gives them the types of the whole.
@resultBuilder
public enum ReducerBuilder<
    State: Sendable,
    Input: Sendable,
    Feedback: Sendable,
    Output: Sendable
> {
    /// Takes a reducer of these types.
    public static func buildExpression<R: Reducer>(_ reducer: R) -> R
    where
        R.State == State,
        R.Input == Input,
        R.Feedback == Feedback,
        R.Output == Output
    {
        reducer
    }

    /// Takes a closure reducer, whose types are those of the whole.
    public static func buildExpression(
        _ reducer: Reduce<State, Input, Feedback, Output>
    ) -> Reduce<State, Input, Feedback, Output> {
        reducer
    }

    /// The first reducer.
    public static func buildPartialBlock<R: Reducer>(first: R) -> R
    where
        R.State == State,
        R.Input == Input,
        R.Feedback == Feedback,
        R.Output == Output
    {
        first
    }

    /// The reducers before, and then another.
    public static func buildPartialBlock<First: Reducer, Next: Reducer>(
        accumulated: First,
        next: Next
    ) -> Reduce<State, Input, Feedback, Output>
    where
        First.State == State,
        First.Input == Input,
        First.Feedback == Feedback,
        First.Output == Output,
        Next.State == State,
        Next.Input == Input,
        Next.Feedback == Feedback,
        Next.Output == Output
    {
        accumulated.combined(with: next)
    }
}
