public import StateEngine

/// A container that delivers its changes to listeners, observers and streams.
///
/// Each observer costs one slot: changes that arrive while it is busy become one, with the count of
/// those skipped. Without observers a change costs as much as one of a ``State``.
open class MonitoredState<Value: Sendable, Failure: Error>: State<Value, Failure>,
    @unchecked Sendable
{
    package override class var libraryClass: AnyClass { MonitoredState<Value, Failure>.self }

    /// Makes a container in memory.
    ///
    /// - Parameters:
    ///   - defaultValue: The value until the first change.
    ///   - key: The name in messages; containers with the same key are independent.
    @_disfavoredOverload
    public override init(_ defaultValue: Value, key: Key) where Failure == Never {
        super.init(defaultValue, key: key)
    }

    /// Makes a container in memory that refuses the values for which `check` throws.
    package override init(
        _ defaultValue: Value,
        key: Key,
        check: @escaping @Sendable (Value) throws(StateError) -> Void
    ) throws(StateError) where Failure == StateError {
        try super.init(defaultValue, key: key, check: check)
    }

    /// Makes a container whose value is in a keyspace.
    package override init(
        core: StateCore<Value>,
        check: (@Sendable (Value) throws(StateError) -> Void)?
    ) where Failure == StateError {
        super.init(core: core, check: check)
    }

    /// Delivers the change to the listeners; an override must call super.
    open override func didModify(_ change: StateChange<Value>) {
        super.didModify(change)
        let registration = registration
        if registration.queue.listeners.deliver(change.record) { leave(registration) { $0.isGone } }
    }

    // MARK: Receivers

    /// Delivers changes to `receiver` until the returned membership is released.
    final func join(_ receiver: some Receiver, from beginning: Beginning) -> Membership {
        let registration = registration
        _ = registration.core.join(receiver, to: registration.queue, from: beginning)
        return Membership { self.leave(registration) { $0 === receiver } }
    }

    /// Removes receivers.
    ///
    /// Once none is left, changes are made in place again, unless a subclass takes them.
    private final func leave(
        _ registration: Registration<Value>,
        where leaves: (any Receiver) -> Bool
    ) {
        registration.queue.listeners.remove(where: leaves)
        if isOfLibrary, registration.queue.listeners.isEmpty {
            registration.core.unregisterIdle(registration.queue)
        }
    }
}

// MARK: - Listeners

extension MonitoredState {
    /// Delivers changes to `listener` from now on, as long as it lives.
    ///
    /// The container does not retain it.
    ///
    /// A listener that is already attached is unaffected. In a ``StateScope`` the listener is
    /// attached to the value of that scope. With `initial` it first gets the current value, as a
    /// change whose `old` equals its `new`.
    public final func attach(listener: any StateListener, initial: Bool = false) {
        let registration = registration
        // A listener that is gone may have had the address of this one.
        leave(registration) { $0.isGone }
        let identity = ObjectIdentifier(listener)
        let delivery = Delivery(
            key,
            on: listener.stateListenerQueue,
            to: listener,
            who: "\(type(of: listener))"
        ) { [weak self, weak listener] change in
            if let self, let listener { listener.stateModified(self, StateChange(change)) }
        }
        let joined = registration.core.join(
            delivery,
            to: registration.queue,
            from: initial ? .current : .now
        ) {
            ($0 as? Delivery)?.identity == identity
        }
        if joined === delivery { delivery.start() }
    }

    /// Delivers no more changes to `listener`; a running call may still be running when this
    /// returns.
    public final func detach(listener: any StateListener) {
        for delivery in deliveries(to: listener) { delivery.end() }
        leave(registration) { ($0 as? Delivery)?.identity == ObjectIdentifier(listener) }
    }

    /// Holds changes back, for a listener that is hidden; they are merged into one in its slot.
    public final func pause(listener: any StateListener) {
        for delivery in deliveries(to: listener) { delivery.pause() }
    }

    /// Delivers the changes that arrived during the pause in one call; makes no call if there were
    /// none.
    public final func resume(listener: any StateListener) {
        for delivery in deliveries(to: listener) { delivery.resume() }
    }

    /// The attached listeners, in the order in which they were attached.
    public final var allListeners: [any StateListener] {
        registration.queue.listeners.receivers.compactMap { ($0 as? Delivery)?.listener }
    }

    private final func deliveries(to listener: any StateListener) -> [Delivery] {
        registration.queue.listeners.receivers.compactMap { $0 as? Delivery }
            .filter { $0.identity == ObjectIdentifier(listener) }
    }
}
