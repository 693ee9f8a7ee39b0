extension MonitoredContainer {
    /// Calls `body` for changes until the returned observation is released.
    ///
    /// Calls never overlap. Changes that arrive during a call become one change, with the count of
    /// those skipped. `body` may modify the container; it gets that change after the call has
    /// returned.
    ///
    /// A closure that is isolated to an actor runs there: one that is written in code of the main
    /// actor on the main actor, whose queue must be running (`dispatchMain()`, or an `async` main).
    /// Any other runs on ``StateQueue/notifier``.
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
        @_inheritActorContext _ body:
            @escaping @isolated(any) @Sendable (
                StateChange<Value>
            ) -> Void
    ) -> StateObservation {
        observe(seeing: { $0 }, initial: initial, who: "\(file):\(line)", body)
    }

    /// Calls `body` with what `view` makes of each change, on the actor that `body` is isolated to.
    final func observe<Seen>(
        seeing view: @escaping @Sendable (StateChange<Value>) -> Seen,
        initial: Bool,
        who: String,
        _ body: @escaping @isolated(any) @Sendable (Seen) -> Void
    ) -> StateObservation {
        let actor = body.isolation
        // The delivery calls it on that actor only, if there is one. An isolated closure has its
        // actor among what it captures; it is called as any other.
        let call = unsafeBitCast(body, to: (@Sendable (Seen) -> Void).self)
        let isOnMain = actor === MainActor.shared
        let delivery = Delivery(
            key,
            on: isOnMain ? .main : .notifier,
            actor: isOnMain ? nil : actor,
            who: who
        ) { call(view(StateChange($0))) }
        return observation(by: delivery, delivery, initial: initial)
    }

    /// Calls `body` on `queue` for changes until the returned observation is released.
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
        on queue: StateQueue,
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @Sendable (StateChange<Value>) -> Void
    ) -> StateObservation {
        let delivery = Delivery(key, on: queue, who: "\(file):\(line)") { body(StateChange($0)) }
        return observation(by: delivery, delivery, initial: initial)
    }

    /// Delivers changes to `receiver`, which passes them on to `delivery` or is the delivery
    /// itself.
    private final func observation(
        by receiver: some Receiver,
        _ delivery: Delivery,
        initial: Bool
    ) -> StateObservation {
        let membership = join(receiver, from: initial ? .current : .now)
        delivery.start()
        return StateObservation(delivery, membership)
    }

    /// The value for code that uses the Observation library.
    ///
    /// It changes right after the container does, on the thread that delivers the change. After the
    /// first access the container publishes every change.
    public final var observed: ObservedState<Value, Failure> {
        core.tracker.view { ObservedState(self) }
    }
}
