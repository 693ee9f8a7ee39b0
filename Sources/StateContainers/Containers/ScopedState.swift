public import StateEngine

/// One part of a container's value.
///
/// Its observers and streams wake only when the part changes.
///
/// It retains the container.
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
    /// - Returns: The revision of the commit; every thread now reads it, or a later one.
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public func modify(_ newValue: Field) throws(Failure) -> Revision {
        try state.change { $0[keyPath: path] = newValue }.revision
    }

    /// Changes the part in one step; `body` must not use any container.
    ///
    /// - Returns: What `body` returned.
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public func modify<R>(_ body: (inout Field) -> R) throws(Failure) -> R {
        try state.change { body(&$0[keyPath: path]) }.result
    }

    /// Calls `body` for changes of the part until the returned observation is released.
    ///
    /// - Parameters:
    ///   - queue: Where `body` runs.
    ///   - initial: Whether `body` first gets the current part, as a change whose `old` equals its
    ///     `new`.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the changes.
    /// - Returns: The observation; releasing it ends the calls.
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

    /// Calls `body` on the main actor for changes of the part until the returned observation is
    /// released.
    ///
    /// The main queue must be running. A closure selects this overload with `@MainActor`: `{
    /// @MainActor change in … }`.
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

    /// The values of the part: each iterator gets the current one first, then always the latest.
    public var values: StateValues<Field> {
        StateValues { [state, path] slot in
            state.join(PartReceiver(path, slot), from: .current)
        }
    }
}

extension MonitoredState {
    /// The part of the value at `path`, as a container of its own; accessors in `path` must not use
    /// any container.
    public final func scope<Field: Equatable & Sendable>(
        _ path: any WritableKeyPath<Value, Field> & Sendable
    ) -> ScopedState<Value, Field, Failure> {
        ScopedState(self, path)
    }
}

/// Passes on the changes of one part of the value.
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
