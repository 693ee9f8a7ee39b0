/// Who is told of the changes of the containers that it is attached to.
///
/// ```swift
/// final class Map: StateListener {
///     func stateModified<Value, Failure>(_ state: State<Value, Failure>, _ change: StateChange<Value>) {
///         if state === AppState.deviceLocation { redraw() }
///     }
/// }
/// ```
public protocol StateListener: AnyObject, Sendable {
    /// Called with one change after the other of one container, never two at once; changes that came while it was at work are
    /// one change, which counts them.
    ///
    /// It may modify the container: the change is told when this call has returned.
    func stateModified<Value, Failure>(
        _ state: State<Value, Failure>,
        _ change: StateChange<Value>
    )

    /// Where it is called; asked once, when it is attached. ``StateQueue/notifier`` unless it says otherwise.
    var stateListenerQueue: StateQueue { get }
}

extension StateListener {
    /// The threads of the library.
    public var stateListenerQueue: StateQueue { .notifier }
}
