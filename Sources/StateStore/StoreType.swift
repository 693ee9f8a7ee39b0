/// An object with a state that others read and follow, and with outputs.
public protocol StoreType<State, Output>: AnyObject, Sendable {
    /// The type of its state.
    associatedtype State: Sendable
    /// The type of its outputs; each is delivered once, to whoever is listening.
    associatedtype Output: Sendable

    /// The current state.
    var state: State { get }
    /// The current state, then always the latest; equal ones are not repeated.
    var stateStream: StoreStates<State> { get }
    /// The outputs from this access on.
    var outputStream: StoreOutputs<Output> { get }
}

/// A message to a reducer.
public enum Message<Input: Sendable, Feedback: Sendable>: Sendable {
    /// From outside.
    case input(Input)
    /// From an effect.
    case feedback(Feedback)

    /// The case name of the message, without the payload, which may be long or private:
    /// `increment`, `chats.select`.
    var name: String {
        switch self {
        case .input(let input): caseName(of: input)
        case .feedback(let feedback): caseName(of: feedback)
        }
    }
}

/// The case names of an enum and of the enums in its payloads; for another value, its type.
private func caseName(of value: Any) -> String {
    var names: [String] = []
    var rest: Any? = value
    while let value = rest.take(), names.count < 8 {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .enum else { break }
        // A case without a payload has no children; its description is its name.
        let child = mirror.children.first
        names.append(child?.label ?? String("\(value)".prefix(64)))
        rest = child?.value
    }
    return names.isEmpty ? "\(type(of: value))" : names.joined(separator: ".")
}

/// Handles messages: changes a state, and returns effects.
public protocol Reducer<State, Input, Feedback, Output>: Sendable {
    /// The state that it changes.
    associatedtype State: Sendable
    /// The messages from outside.
    associatedtype Input: Sendable
    /// The messages from effects.
    associatedtype Feedback: Sendable
    /// The outputs, which are delivered to whoever is listening.
    associatedtype Output: Sendable
    /// The reducers that it is made of; `Never` if it implements ``reduce(_:into:)``.
    associatedtype Body = Never

    /// The reducers that it is made of, instead of ``reduce(_:into:)``: each gets each message, in
    /// this order, and so do their effects start.
    @ReducerBuilder<State, Input, Feedback, Output> var body: Body { get }

    /// Changes `state` in response to `message`, and returns the effects to perform.
    ///
    /// It must have no side effects: if the state is shared, it may run again on a newer state, and
    /// only the effects of the committed run start. It must not use any container or send messages:
    /// that ends the process.
    func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output>
}
