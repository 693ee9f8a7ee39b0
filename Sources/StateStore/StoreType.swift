/// Something that holds a state which others read and follow, and that says outputs.
public protocol StoreType<State, Output>: AnyObject, Sendable {
    /// What it is in.
    associatedtype State: Sendable
    /// What it says, once, to those who listen then.
    associatedtype Output: Sendable

    /// The state of now.
    var state: State { get }
    /// The current state, then always the latest; equal ones are not repeated.
    var stateStream: StoreStates<State> { get }
    /// The outputs from this access on.
    var outputStream: StoreOutputs<Output> { get }
}

/// What a reducer is given.
public enum Message<Input: Sendable, Feedback: Sendable>: Sendable {
    /// From outside.
    case input(Input)
    /// From an effect.
    case feedback(Feedback)

    /// The name of what it carries, without the payload, which may be long or private: `increment`, `chats.select`.
    var name: String {
        switch self {
        case .input(let input): caseName(of: input)
        case .feedback(let feedback): caseName(of: feedback)
        }
    }
}

/// The names of the cases of an enum and of the enums in it; of another value, its type.
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

/// How a state answers messages.
public protocol Reducer<State, Input, Feedback, Output>: Sendable {
    /// What it changes.
    associatedtype State: Sendable
    /// What may be sent from outside.
    associatedtype Input: Sendable
    /// What effects send.
    associatedtype Feedback: Sendable
    /// What is said to whom it concerns.
    associatedtype Output: Sendable

    /// Changes `state` as `message` asks, and says what is to be done beside.
    ///
    /// It only computes: where the state is shared it may run again on a newer one, and the effects of the run that was committed
    /// alone start. It may touch no container and send nothing: that ends the process.
    func reduce(
        _ message: Message<Input, Feedback>,
        into state: inout State
    ) -> Effect<Feedback, Output>
}
