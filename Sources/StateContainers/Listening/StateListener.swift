/// An object that receives the changes of the containers that it is attached to.
///
/// ```swift
/// final class Map: StateListener {
///     func stateModified<Value, Failure>(
///         _ state: StateContainer<Value, Failure>, _ change: StateChange<Value>
///     ) {
///         if state === AppState.deviceLocation { redraw() }
///     }
/// }
/// ```
public protocol StateListener: AnyObject, Sendable {
    /// Called for the changes of one container, one call at a time; changes that arrive during a
    /// call are merged into one, which counts those skipped.
    ///
    /// It may modify the container; it gets that change after this call has returned.
    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    )

    /// Where the calls run; read once, when the listener is attached. The default is
    /// ``StateQueue/notifier``.
    var stateListenerQueue: StateQueue { get }
}

/// An object on the main actor that receives the changes of the containers that it is attached to.
///
/// ```swift
/// final class Label: MainActorListener {
///     var text = ""
///
///     func stateModified<Value, Failure>(
///         _ state: StateContainer<Value, Failure>, _ change: StateChange<Value>
///     ) {
///         text = "\(change.new)"
///     }
/// }
/// ```
@MainActor
public protocol MainActorListener: AnyObject, Sendable {
    /// Called on the main actor for the changes of one container, one call at a time; changes that
    /// arrive during a call are merged into one, which counts those skipped.
    ///
    /// The main queue must be running: `dispatchMain()`, or an `async` main.
    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    )
}

extension StateListener {
    /// The library's threads.
    public var stateListenerQueue: StateQueue { .notifier }
}
