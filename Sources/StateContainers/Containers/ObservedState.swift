public import Observation

/// A container's value for code that uses the Observation library.
///
/// ```swift
/// withObservationTracking { label = volume.observed.value } onChange: { redraw() }
/// ```
///
/// When `onChange` is called, the value is already the new one.
public final class ObservedState<Value: Sendable>: Observable, Receiver {
    private let registrar = ObservationRegistrar()
    private let core: StateCore<Value>

    init(core: StateCore<Value>) { self.core = core }

    /// The container's value.
    public var value: Value {
        registrar.access(self, keyPath: \.value)
        return core.read()
    }

    package func put(_ change: ChangeRecord) {
        registrar.withMutation(of: self, keyPath: \.value) {}
    }
}
