extension MonitoredState {
    /// Has `body` called with changes until what is returned is released.
    ///
    /// One call after the other, never two at once; changes that came while it was at work are one change, which counts them. It may
    /// modify the container: that change is told when the call has returned.
    ///
    /// - Parameters:
    ///   - queue: Where it is called.
    ///   - initial: Whether it is called with the current value first, as a change whose `old` is its `new`.
    ///   - file: How a trace names it.
    ///   - line: The same.
    ///   - body: What is called.
    /// - Returns: What ends it when it is released.
    public final func observe(
        on queue: StateQueue = .notifier,
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @Sendable (StateChange<Value>) -> Void
    ) -> StateObservation {
        let delivery = Delivery(key, on: queue, who: "\(file):\(line)") { body(StateChange($0)) }
        return observation(by: delivery, delivery, initial: initial)
    }

    /// Has `body` called on the main actor with changes until what is returned is released.
    ///
    /// The main queue must be running: `dispatchMain()`, or an `async` main. A closure says that it means this one:
    /// `state.observe { @MainActor change in … }`.
    ///
    /// - Parameters:
    ///   - initial: Whether it is called with the current value first, as a change whose `old` is its `new`.
    ///   - file: How a trace names it.
    ///   - line: The same.
    ///   - body: What is called.
    /// - Returns: What ends it when it is released.
    public final func observe(
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @MainActor (StateChange<Value>) -> Void
    ) -> StateObservation {
        observe(on: .main, initial: initial, file: file, line: line) { change in
            MainActor.assumeIsolated { body(change) }
        }
    }

    /// Has `receiver` told, which hands what it is given to `delivery`, or is it.
    final func observation(
        by receiver: some Receiver,
        _ delivery: Delivery,
        initial: Bool
    ) -> StateObservation {
        let membership = join(receiver, from: initial ? .current : .now)
        delivery.start()
        return StateObservation(delivery, membership)
    }

    /// The value for code that tracks what it reads with the Observation library, made at the first look.
    ///
    /// It changes on the thread that tells of the change, right after the container did. From the first look on each change is told.
    public final var observed: ObservedState<Value> {
        let registration = registration
        let told = registration.core.join(
            ObservedState(core: registration.core),
            to: registration.queue,
            from: .now
        ) { $0 is ObservedState<Value> }
        guard let observed = told as? ObservedState<Value> else {
            preconditionFailure("another receiver than the one that was joined")
        }
        return observed
    }
}
