public import Observation
public import StateEngine

/// A container's value for code that uses the Observation library.
///
/// ```swift
/// withObservationTracking { label = volume.observed.value } onChange: { redraw() }
/// ```
///
/// When `onChange` is called, the value is already the new one. A reader of one part, as in
/// `profile.observed.name`, gets changes of that part only.
@dynamicMemberLookup
public final class ObservedState<Value: Sendable, Failure: Error>: Observable, Sendable {
    private let state: MonitoredContainer<Value, Failure>

    init(_ state: MonitoredContainer<Value, Failure>) { self.state = state }

    /// The container's value.
    ///
    /// It has no setter, because `value += 1` by two threads would lose one of the changes.
    public var value: Value {
        get { state.observedValue(\.self) }
        @available(
            *,
            unavailable,
            message: "use set(_:), or modify { $0 += 1 } for a change in one step"
        )
        // For key paths, which the compiler cannot refuse.
        set { state.replaceOrNote(newValue) }
    }

    /// A part of the container's value.
    public subscript<Part>(dynamicMember path: any KeyPath<Value, Part> & Sendable) -> Part {
        state.observedValue(path)
    }

    /// Replaces the container's value; see ``StateContainer/set(_:)``.
    @discardableResult
    public func set(_ newValue: Value) throws(Failure) -> Revision { try state.set(newValue) }

    /// Changes the container's value in one step; `body` must not use any container.
    ///
    /// - Returns: What `body` returned.
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public func modify<R>(_ body: (inout Value) -> R) throws(Failure) -> R {
        try state.modify(body)
    }
}
