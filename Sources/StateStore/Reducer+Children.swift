extension Reducer {
    /// Runs a reducer of an Optional part of the state while the part is not nil.
    ///
    /// The part's reducer gets its messages before this one does. When this one makes the part nil,
    /// the effects of the part are cancelled.
    ///
    /// - Parameters:
    ///   - path: The part; a message for it is ignored by its reducer while it is nil.
    ///   - input: Extracts the part's input; nil if the input does not concern the part.
    ///   - feedback: Extracts the part's feedback, and converts it back.
    ///   - output: Converts the part's outputs to those of the parent.
    ///   - part: The reducer of the part.
    /// - Returns: Both, as one reducer.
    public func ifLet<Part: Reducer>(
        _ path: any WritableKeyPath<State, Part.State?> & Sendable,
        input: @escaping @Sendable (Input) -> Part.Input?,
        feedback: (
            from: @Sendable (Feedback) -> Part.Feedback?, to: @Sendable (Part.Feedback) -> Feedback
        ),
        output: @escaping @Sendable (Part.Output) -> Output,
        then part: Part
    ) -> Reduce<State, Input, Feedback, Output> {
        let (from, to) = feedback
        return Reduce { state, message in
            let id = PartID(path: path, element: 0)
            let effect = message.part(input, from).flatMap { inner in
                part.reduce(inner, intoOptional: &state[keyPath: path])
            }
            let mine = reduce(message, into: &state)
            let isGone = state[keyPath: path] == nil
            return .merge([
                effect?.map(feedback: to, output: output).cancellable(id: id) ?? .none, mine,
                isGone ? .cancel(id: id) : .none,
            ])
        }
    }

    /// The same for a part with the outputs of the parent.
    public func ifLet<Part: Reducer>(
        _ path: any WritableKeyPath<State, Part.State?> & Sendable,
        input: @escaping @Sendable (Input) -> Part.Input?,
        feedback: (
            from: @Sendable (Feedback) -> Part.Feedback?, to: @Sendable (Part.Feedback) -> Feedback
        ),
        then part: Part
    ) -> Reduce<State, Input, Feedback, Output> where Part.Output == Output {
        ifLet(path, input: input, feedback: feedback, output: { $0 }, then: part)
    }

    /// Runs a reducer for each element of an array of the state.
    ///
    /// The element's reducer gets its messages before this one does. When this one removes an
    /// element, the effects of the element are cancelled.
    ///
    /// - Parameters:
    ///   - path: The elements; a message for one that is not there is ignored by its reducer.
    ///   - input: Extracts the id and the input of an element; nil if the input concerns none.
    ///   - feedback: Extracts the id and the feedback of an element, and converts them back.
    ///   - output: Converts an element's outputs to those of the parent.
    ///   - part: The reducer of an element.
    /// - Returns: Both, as one reducer.
    /// - Complexity: O(*n*) in the elements for each message.
    public func forEach<Part: Reducer, ID: Hashable & Sendable>(
        _ path: any WritableKeyPath<State, [Part.State]> & Sendable,
        input: @escaping @Sendable (Input) -> (id: ID, input: Part.Input)?,
        feedback: (
            from: @Sendable (Feedback) -> (id: ID, feedback: Part.Feedback)?,
            to: @Sendable (ID, Part.Feedback) -> Feedback
        ),
        output: @escaping @Sendable (ID, Part.Output) -> Output,
        then part: Part
    ) -> Reduce<State, Input, Feedback, Output>
    where Part.State: Identifiable, Part.State.ID == ID {
        let (from, to) = feedback
        return Reduce { state, message in
            let inner: (id: ID, message: Message<Part.Input, Part.Feedback>)? =
                switch message {
                case .input(let whole): input(whole).map { ($0.id, .input($0.input)) }
                case .feedback(let whole): from(whole).map { ($0.id, .feedback($0.feedback)) }
                }
            var effects: [Effect<Feedback, Output>] = []
            if let (id, inner) = inner,
                let place = state[keyPath: path].firstIndex(where: { $0.id == id })
            {
                let effect = part.reduce(inner, into: &state[keyPath: path][place])
                    .map(feedback: { to(id, $0) }, output: { output(id, $0) })
                effects.append(effect.cancellable(id: PartID(path: path, element: id)))
            }
            let before = state[keyPath: path].map(\.id)
            effects.append(reduce(message, into: &state))
            let after = Set(state[keyPath: path].map(\.id))
            for id in before where !after.contains(id) {
                effects.append(.cancel(id: PartID(path: path, element: id)))
            }
            return .merge(effects)
        }
    }

    /// The same for elements with the outputs of the parent.
    public func forEach<Part: Reducer, ID: Hashable & Sendable>(
        _ path: any WritableKeyPath<State, [Part.State]> & Sendable,
        input: @escaping @Sendable (Input) -> (id: ID, input: Part.Input)?,
        feedback: (
            from: @Sendable (Feedback) -> (id: ID, feedback: Part.Feedback)?,
            to: @Sendable (ID, Part.Feedback) -> Feedback
        ),
        then part: Part
    ) -> Reduce<State, Input, Feedback, Output>
    where Part.State: Identifiable, Part.State.ID == ID, Part.Output == Output {
        forEach(path, input: input, feedback: feedback, output: { $1 }, then: part)
    }
}

extension Message {
    /// The same message for a part; nil if it does not concern the part.
    func part<PartInput, PartFeedback>(
        _ input: (Input) -> PartInput?,
        _ feedback: (Feedback) -> PartFeedback?
    ) -> Message<PartInput, PartFeedback>? {
        switch self {
        case .input(let whole): input(whole).map { .input($0) }
        case .feedback(let whole): feedback(whole).map { .feedback($0) }
        }
    }
}

extension Reducer {
    /// Passes a message to the reducer, unless there is no state.
    fileprivate func reduce(
        _ message: Message<Input, Feedback>,
        intoOptional state: inout State?
    ) -> Effect<Feedback, Output>? {
        guard var present = state.take() else { return nil }
        defer { state = present }
        return reduce(message, into: &present)
    }
}

/// The id of the effects of a part of the state.
private struct PartID<Element: Hashable & Sendable>: Hashable, Sendable {
    let path: any AnyKeyPath & Sendable
    let element: Element

    static func == (left: PartID, right: PartID) -> Bool {
        (left.path as AnyKeyPath) == (right.path as AnyKeyPath) && left.element == right.element
    }

    func hash(into hasher: inout Hasher) {
        (path as AnyKeyPath).hash(into: &hasher)
        element.hash(into: &hasher)
    }
}
