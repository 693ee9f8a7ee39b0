public import StateEngine

/// One part of a container's value: who observes it, or streams its values, is woken only when the part changes.
///
/// It keeps the container.
public final class ScopedState<Root: Sendable, Field: Equatable & Sendable, Failure: Error>:
    Sendable
{
    /// The container.
    public let state: MonitoredState<Root, Failure>
    private let path: any WritableKeyPath<Root, Field> & Sendable

    init(
        _ state: MonitoredState<Root, Failure>,
        _ path: any WritableKeyPath<Root, Field> & Sendable
    ) {
        self.state = state
        self.path = path
    }

    /// The part.
    public var value: Field { state.withValue { $0[keyPath: path] } }

    /// Replaces the part.
    ///
    /// - Returns: The commit; every thread reads it, or a later one.
    /// - Throws: Why it was refused; the value is as it was.
    @discardableResult
    public func modify(_ newValue: Field) throws(Failure) -> Revision {
        try state.change { $0[keyPath: path] = newValue }.revision
    }

    /// Changes the part in one step; the body may touch no container.
    ///
    /// - Returns: What `body` returned.
    /// - Throws: Why it was refused; the value is as it was.
    @discardableResult
    public func modify<R>(_ body: (inout Field) -> R) throws(Failure) -> R {
        try state.change { body(&$0[keyPath: path]) }.result
    }

    /// Has `body` called with changes of the part until what is returned is released.
    ///
    /// - Parameters:
    ///   - queue: Where it is called.
    ///   - initial: Whether it is called with the current part first, as a change whose `old` is its `new`.
    ///   - file: How a trace names it.
    ///   - line: The same.
    ///   - body: What is called.
    /// - Returns: What ends it when it is released.
    public func observe(
        on queue: StateQueue = .notifier,
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @Sendable (StateChange<Field>) -> Void
    ) -> StateObservation {
        let delivery = Delivery(state.key, on: queue, who: "\(file):\(line)") {
            body(StateChange($0))
        }
        let receiver = PartReceiver(path, delivery)
        return state.observation(by: receiver, delivery, initial: initial)
    }

    /// Has `body` called on the main actor with changes of the part until what is returned is released.
    ///
    /// The main queue must be running. A closure says that it means this one: `{ @MainActor change in … }`.
    public func observe(
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @MainActor (StateChange<Field>) -> Void
    ) -> StateObservation {
        observe(on: .main, initial: initial, file: file, line: line) { change in
            MainActor.assumeIsolated { body(change) }
        }
    }

    /// The values of the part: for each iterator the current one, then always the latest.
    public var values: StateValues<Field> {
        StateValues { [state, path] slot in
            state.join(PartReceiver(path, slot), from: .current)
        }
    }
}

extension MonitoredState {
    /// The part of the value at the end of `path`, as a container of its own; what `path` runs may touch no container.
    public final func scope<Field: Equatable & Sendable>(
        _ path: any WritableKeyPath<Value, Field> & Sendable
    ) -> ScopedState<Value, Field, Failure> {
        ScopedState(self, path)
    }
}

/// Hands on what happens to one part of the value.
private final class PartReceiver<Value: Sendable, Field: Equatable & Sendable>: Receiver {
    private let path: any KeyPath<Value, Field> & Sendable
    private let receiver: any Receiver

    init(_ path: any KeyPath<Value, Field> & Sendable, _ receiver: any Receiver) {
        self.path = path
        self.receiver = receiver
    }

    func begin(_ current: ChangeRecord) { receiver.begin(part(of: current)) }

    func put(_ change: ChangeRecord) {
        let part = part(of: change)
        if part.old != part.new { receiver.put(part) }
    }

    private func part(of change: ChangeRecord) -> ChangeValues<Field> {
        let whole = StateChange<Value>(change)
        return ChangeValues(whole.old[keyPath: path], whole.new[keyPath: path], change.facts)
    }
}
