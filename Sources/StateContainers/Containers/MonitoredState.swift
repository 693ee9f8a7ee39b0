import StateEngine

/// A container that tells who listens, observes or streams of each change.
open class MonitoredState<Value: Sendable, Failure: Error>: State<Value, Failure>,
    @unchecked Sendable
{
    package override class var libraryClass: AnyClass { MonitoredState<Value, Failure>.self }

    /// Tells the listeners; an override calls super.
    open override func didModify(_ change: StateChange<Value>) {
        super.didModify(change)
        seat.queue.listeners.tell(change)
    }
}
