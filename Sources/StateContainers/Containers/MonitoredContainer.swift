public import StateEngine

/// A container that delivers its changes to listeners, observers and streams.
///
/// Each observer costs one slot: changes that arrive while it is busy become one, with the count of
/// those skipped. Without observers a change costs as much as one of a ``State``.
open class MonitoredContainer<Value: Sendable, Failure: Error>: StateContainer<Value, Failure>,
    @unchecked Sendable
{
    package override class var libraryClass: AnyClass { MonitoredContainer<Value, Failure>.self }

    /// Makes a container in memory.
    ///
    /// - Parameters:
    ///   - defaultValue: The value until the first change.
    ///   - key: The name in messages; containers with the same key are independent.
    @_disfavoredOverload
    public override init(_ defaultValue: Value, key: Key) where Failure == Never {
        super.init(trackedInMemory: defaultValue, key: key, check: nil)
    }

    /// Makes a container in memory that refuses the values for which `check` throws.
    package override init(
        trackedInMemory defaultValue: Value,
        key: Key,
        check: StateCore<Value>.Check?
    ) {
        super.init(trackedInMemory: defaultValue, key: key, check: check)
    }

    /// Makes a container whose value is in a keyspace, or a part of another value.
    package override init(
        core: StateCore<Value>,
        check: StateCore<Value>.Check?,
        isLate: Bool = false
    ) {
        super.init(core: core, check: check, isLate: isLate)
    }

    /// Delivers the change to the listeners; an override must call super.
    open override func didModify(_ change: StateChange<Value>) {
        super.didModify(change)
        if registration.queue.listeners.deliver(change.record) { removeGoneReceivers() }
    }

    package final override func removeGoneReceivers() {
        leave(registration) { $0.removeGone() }
    }

    // MARK: Receivers

    /// Delivers changes to `receiver` until the returned membership is released.
    final func join(_ receiver: some Receiver, from beginning: Beginning) -> Membership {
        let registration = registration
        _ = registration.core.join(receiver, to: registration.queue, from: beginning)
        return Membership { self.leave(registration) { $0.remove(receiver) } }
    }

    /// Removes receivers.
    ///
    /// Once none is left, changes are made in place again, unless a subclass takes them.
    private final func leave(
        _ registration: Registration<Value>,
        _ remove: (ListenerList) -> Void
    ) {
        remove(registration.queue.listeners)
        if isOfLibrary, registration.queue.listeners.isEmpty {
            registration.core.unregisterIdle(registration.queue)
        }
    }
}

/// A monitored container in memory: changing it never fails.
public typealias MonitoredState<Value: Sendable> = MonitoredContainer<Value, Never>

// MARK: - Listeners

extension MonitoredContainer {
    /// Delivers changes to `listener` from now on, as long as it lives.
    ///
    /// The container does not retain it.
    ///
    /// A listener that is already attached is unaffected. In a ``StateScope`` the listener is
    /// attached to the value of that scope. With `initial` it first gets the current value, as a
    /// change whose `old` equals its `new`.
    public final func attach(listener: any StateListener, initial: Bool = false) {
        attach(listener, on: listener.stateListenerQueue, initial: initial) { [weak listener] in
            listener?.stateModified($0, $1)
        }
    }

    /// The same for a listener whose calls run on the main actor.
    public final func attach(listener: any MainActorListener, initial: Bool = false) {
        attach(listener, on: .main, initial: initial) { [weak listener] state, change in
            MainActor.assumeIsolated { listener?.stateModified(state, change) }
        }
    }

    private final func attach(
        _ listener: any AnyObject & Sendable,
        on queue: StateQueue,
        initial: Bool,
        _ call: @escaping @Sendable (StateContainer<Value, Failure>, StateChange<Value>) -> Void
    ) {
        let registration = registration
        let listeners = registration.queue.listeners
        // A listener that is gone may have had the address of this one.
        let same = listeners.receiver(of: ObjectIdentifier(listener))
        if listeners.isCrowded() || same?.isGone == true {
            leave(registration) { $0.removeGone() }
        }
        let delivery = Delivery(
            key,
            on: queue,
            to: listener,
            who: "\(type(of: listener))"
        ) { [weak self] change in
            if let self { call(self, StateChange(change)) }
        }
        let joined = registration.core.join(
            delivery,
            to: registration.queue,
            from: initial ? .current : .now
        )
        if joined === delivery { delivery.start() }
    }

    /// Delivers no more changes to `listener`; a running call may still be running when this
    /// returns.
    public final func detach(listener: any AnyObject & Sendable) {
        guard let delivery = delivery(to: listener) else { return }
        delivery.end()
        leave(registration) { $0.remove(delivery) }
    }

    /// Holds changes back, for a listener that is hidden; they are merged into one in its slot.
    public final func pause(listener: any AnyObject & Sendable) {
        delivery(to: listener)?.pause()
    }

    /// Delivers the changes that arrived during the pause in one call; makes no call if there were
    /// none.
    public final func resume(listener: any AnyObject & Sendable) {
        delivery(to: listener)?.resume()
    }

    /// The attached listeners, in the order in which they were attached, without those of the main
    /// actor.
    public final var allListeners: [any StateListener] {
        registration.queue.listeners.receivers.compactMap {
            ($0 as? Delivery)?.listener as? any StateListener
        }
    }

    private final func delivery(to listener: any AnyObject & Sendable) -> Delivery? {
        registration.queue.listeners.receiver(of: ObjectIdentifier(listener)) as? Delivery
    }
}
