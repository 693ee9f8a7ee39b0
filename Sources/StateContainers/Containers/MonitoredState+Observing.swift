extension MonitoredState {
    /// Calls `body` for changes until the returned observation is released.
    ///
    /// Calls never overlap. Changes that arrive during a call become one change, with the count of
    /// those skipped. `body` may modify the container; it gets that change after the call has
    /// returned.
    ///
    /// - Parameters:
    ///   - queue: Where `body` runs.
    ///   - initial: Whether `body` first gets the current value, as a change whose `old` equals its
    ///     `new`.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the changes.
    /// - Returns: The observation; releasing it ends the calls.
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

    /// Calls `body` on the main actor for changes until the returned observation is released.
    ///
    /// The main queue must be running: `dispatchMain()`, or an `async` main. A closure selects this
    /// overload with `@MainActor`: `state.observe { @MainActor change in … }`.
    ///
    /// - Parameters:
    ///   - initial: Whether `body` first gets the current value, as a change whose `old` equals its
    ///     `new`.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the changes.
    /// - Returns: The observation; releasing it ends the calls.
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

    /// Delivers changes to `receiver`, which passes them on to `delivery` or is the delivery
    /// itself.
    final func observation(
        by receiver: some Receiver,
        _ delivery: Delivery,
        initial: Bool
    ) -> StateObservation {
        let membership = join(receiver, from: initial ? .current : .now)
        delivery.start()
        return StateObservation(delivery, membership)
    }

    /// The value for code that uses the Observation library; made on first access.
    ///
    /// It changes right after the container does, on the thread that delivers the change. After the
    /// first access the container publishes every change.
    public final var observed: ObservedState<Value> {
        let registration = registration
        let joined = registration.core.join(
            ObservedState(core: registration.core),
            to: registration.queue,
            from: .now
        ) { $0 is ObservedState<Value> }
        guard let observed = joined as? ObservedState<Value> else {
            preconditionFailure("join returned a receiver of another type")
        }
        return observed
    }
}
