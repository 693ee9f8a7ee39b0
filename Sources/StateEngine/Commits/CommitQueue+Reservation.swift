import CLinux
import StateSystem

/// The reservation of revisions. The commit thread raises it, because that waits for the disk.
extension CommitQueue {
    /// Sets the reservation of revisions.
    func bound(by reservation: RevisionReservation) {
        state.withLock { $0.reservation = reservation }
    }

    /// The pause after a failure: 0.1 s, 0.2 s and so on up to 10 s.
    struct ReservationPatience {
        fileprivate var pause: Int64 = 0

        fileprivate mutating func next() -> Int64 {
            pause = min(max(pause * 2, 100_000_000), 10_000_000_000)
            return pause
        }
    }

    /// Raises it.
    ///
    /// If that fails, it is tried again after a pause; commits continue meanwhile.
    func reserveRevisionsNow(_ patience: inout ReservationPatience) {
        guard let reservation = state.withLock({ $0.reservation }) else { return }
        let hadFailed = patience.pause > 0
        do throws(StateError) {
            let revision = try reservation.raise()
            patience.pause = 0
            if hadFailed { reservation.onFailure(nil) }
            _ = answer(.raised(revision))
        } catch {
            let due = clinux_monotonic_nanoseconds() + patience.next()
            if !hadFailed { reservation.onFailure(error.message) }
            submit(.reserve(at: due))
        }
    }
}
