import StateEngine

/// An observation of a container or a query; it ends when it is cancelled or released.
///
/// Keep it for as long as it is to run. It retains the container, or keeps the query running.
public final class StateObservation: Sendable {
    private let delivery: Delivery
    private let membership: StateLock<Membership?>

    init(_ delivery: Delivery, _ membership: Membership) {
        self.delivery = delivery
        self.membership = StateLock(membership)
    }

    deinit { delivery.end() }

    /// Retains `owner`, without which the changes would end, as long as the observation runs.
    func retaining(_ owner: some AnyObject & Sendable) -> StateObservation {
        membership.withLock { $0 = $0.map { Membership($0, retaining: owner) } }
        return self
    }

    /// Ends the observation; further calls do nothing.
    ///
    /// A running call may still be running when this returns; no call starts afterwards.
    public func cancel() {
        delivery.end()
        _ = membership.withLock { $0.take() }
    }

    /// Holds changes back, for a hidden observer; they are merged into one in its slot.
    public func pause() { delivery.pause() }

    /// Delivers the changes that arrived during the pause in one call; makes no call if there were
    /// none.
    public func resume() { delivery.resume() }
}
