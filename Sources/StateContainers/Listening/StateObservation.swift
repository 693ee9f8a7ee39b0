import StateEngine

/// That somebody observes a container: it ends when it is cancelled or released.
///
/// So it must be kept; it keeps the container.
public final class StateObservation: Sendable {
    private let delivery: Delivery
    private let membership: StateLock<Membership?>

    init(_ delivery: Delivery, _ membership: Membership) {
        self.delivery = delivery
        self.membership = StateLock(membership)
    }

    deinit { delivery.end() }

    /// Ends it; to cancel again does nothing.
    ///
    /// A call that is under way may still be running when this returns; then none is made.
    public func cancel() {
        delivery.end()
        _ = membership.withLock { $0.take() }
    }

    /// Holds the changes back, for one that is hidden: they become one in its slot.
    public func pause() { delivery.pause() }

    /// Tells of what came while it was paused in one call; makes none where nothing did.
    public func resume() { delivery.resume() }
}
