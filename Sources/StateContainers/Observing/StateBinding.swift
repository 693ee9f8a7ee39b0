import Observation
public import StateEngine

/// A value, or a part of one, that a view shows and changes: a text field's text.
///
/// ```swift
/// let name = profile.binding(\.name)
/// name.wrappedValue = "Ada"
/// ```
///
/// A setter replaces its part in one step and leaves the others as they are. It cannot throw: if
/// the container refuses the value, the part stays as it is, and ``refusal`` says why.
@propertyWrapper
@dynamicMemberLookup
public struct StateBinding<Value: Sendable>: Sendable {
    package typealias Change = @Sendable ((inout Value) -> Void) throws -> Void

    private let read: @Sendable () -> Value
    private let change: Change
    private let last: LastRefusal

    /// Makes a binding from closures.
    ///
    /// - Parameters:
    ///   - read: Returns the current value.
    ///   - write: Replaces the value; what it throws becomes the ``refusal``.
    public init(
        get read: @escaping @Sendable () -> Value,
        set write: @escaping @Sendable (Value) throws -> Void
    ) {
        self.init(reading: read) { body in
            var value = read()
            body(&value)
            try write(value)
        }
    }

    package init(reading read: @escaping @Sendable () -> Value, changing change: @escaping Change) {
        self.init(read: read, change: change, last: LastRefusal())
    }

    private init(
        read: @escaping @Sendable () -> Value,
        change: @escaping Change,
        last: LastRefusal
    ) {
        self.read = read
        self.change = change
        self.last = last
    }

    /// The current value; setting it replaces it.
    public var wrappedValue: Value {
        get { read() }
        nonmutating set { modify { $0 = newValue } }
    }

    /// The binding.
    public var projectedValue: StateBinding { self }

    /// Changes the value in one step.
    public func modify(_ body: (inout Value) -> Void) {
        do {
            try change(body)
            last.note(nil)
        } catch {
            last.note(error as? StateError ?? StateError(.rejected, "\(error)"))
        }
    }

    /// A binding to a part of the value.
    public subscript<Part: Sendable>(
        dynamicMember path: any WritableKeyPath<Value, Part> & Sendable
    ) -> StateBinding<Part> {
        StateBinding<Part>(
            read: { [read] in read()[keyPath: path] },
            change: { [change] body in try change { body(&$0[keyPath: path]) } },
            last: last
        )
    }

    /// Why the last value that was set through this binding, or through one of a part, was refused;
    /// nil if it was not.
    public var refusal: StateError? { last.current }
}

/// The refusal that bindings of one container share; a change of it is reported to the Observation library.
private final class LastRefusal: Observable, Sendable {
    private let registrar = ObservationRegistrar()
    private let error = StateLock<StateError?>(nil)

    var current: StateError? {
        registrar.access(self, keyPath: \.current)
        return error.withLock { $0 }
    }

    func note(_ new: StateError?) {
        guard error.withLock({ $0 }) != new else { return }
        error.withLock { $0 = new }
        registrar.withMutation(of: self, keyPath: \.current) {}
    }
}

extension MonitoredContainer {
    /// A binding to the value.
    public final var binding: StateBinding<Value> { binding(\.self) }

    /// A binding to a part of the value; accessors in `path` must not use any container.
    public final func binding<Part: Sendable>(
        _ path: any WritableKeyPath<Value, Part> & Sendable
    ) -> StateBinding<Part> {
        StateBinding {
            self.observedValue(path)
        } changing: { body in
            _ = try self.change { body(&$0[keyPath: path]) }
        }
    }
}
