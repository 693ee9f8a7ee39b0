public import StateEngine

/// A container that tells who listens, observes or streams of each change.
///
/// Each of them costs one slot: what comes while it is at work becomes one change, which counts them. While there is none, a
/// change costs what it costs a ``State``.
open class MonitoredState<Value: Sendable, Failure: Error>: State<Value, Failure>,
    @unchecked Sendable
{
    package override class var libraryClass: AnyClass { MonitoredState<Value, Failure>.self }

    /// A container in memory.
    ///
    /// - Parameters:
    ///   - defaultValue: What it holds until the first change.
    ///   - key: Its name in messages; another container of that key is another container.
    @_disfavoredOverload
    public override init(_ defaultValue: Value, key: Key) where Failure == Never {
        super.init(defaultValue, key: key)
    }

    /// A container in memory that refuses what `check` refuses.
    package override init(
        _ defaultValue: Value,
        key: Key,
        check: @escaping @Sendable (Value) throws(StateError) -> Void
    ) throws(StateError) where Failure == StateError {
        try super.init(defaultValue, key: key, check: check)
    }

    /// A container whose value is in a keyspace.
    package override init(
        core: StateCore<Value>,
        check: (@Sendable (Value) throws(StateError) -> Void)?
    ) where Failure == StateError {
        super.init(core: core, check: check)
    }

    /// Tells the listeners; an override calls super.
    open override func didModify(_ change: StateChange<Value>) {
        super.didModify(change)
        let registration = registration
        if registration.queue.listeners.tell(change.record) { leave(registration) { $0.isGone } }
    }

    // MARK: Who is told

    /// Has `receiver` told until what is returned is released.
    final func join(_ receiver: some Receiver, from beginning: Beginning) -> Membership {
        let registration = registration
        _ = registration.core.join(receiver, to: registration.queue, from: beginning)
        return Membership { self.leave(registration) { $0 === receiver } }
    }

    /// Takes those out who leave; when nobody is left, changes are made in place again, unless a subclass takes them.
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
    /// Tells `listener` of changes from now on, as long as it lives; it is not kept.
    ///
    /// One that is attached already stays as it is. In a ``StateScope`` it is attached to the value of that scope. With `initial` it is
    /// told of the current value first, as a change whose `old` is its `new`.
    public final func attach(listener: any StateListener, initial: Bool = false) {
        let registration = registration
        // One that is gone may have been where this one is.
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
        let told = registration.core.join(
            delivery,
            to: registration.queue,
            from: initial ? .current : .now
        ) {
            ($0 as? Delivery)?.identity == identity
        }
        if told === delivery { delivery.start() }
    }

    /// Tells `listener` of nothing more; a call that is under way may still be running when this returns.
    public final func detach(listener: any StateListener) {
        for delivery in deliveries(to: listener) { delivery.end() }
        leave(registration) { ($0 as? Delivery)?.identity == ObjectIdentifier(listener) }
    }

    /// Holds the changes back, for a listener that is hidden: they become one in its slot.
    public final func pause(listener: any StateListener) {
        for delivery in deliveries(to: listener) { delivery.pause() }
    }

    /// Tells `listener` of what came while it was paused in one call; makes none where nothing did.
    public final func resume(listener: any StateListener) {
        for delivery in deliveries(to: listener) { delivery.resume() }
    }

    /// Those that are attached, in the order in which they were.
    public final var allListeners: [any StateListener] {
        registration.queue.listeners.receivers.compactMap { ($0 as? Delivery)?.listener }
    }

    private final func deliveries(to listener: any StateListener) -> [Delivery] {
        registration.queue.listeners.receivers.compactMap { $0 as? Delivery }
            .filter { $0.identity == ObjectIdentifier(listener) }
    }
}
