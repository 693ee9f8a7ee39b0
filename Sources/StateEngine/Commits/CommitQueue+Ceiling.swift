import CLinux
import StateSystem

/// The ceiling of the revisions: the commit thread raises it, for that waits for the disk.
extension CommitQueue {
    /// How long to wait after a failure: 0.1 s, 0.2 s and so on up to 10 s.
    struct CeilingPatience {
        fileprivate var pause: Int64 = 0

        fileprivate mutating func next() -> Int64 {
            pause = min(max(pause * 2, 100_000_000), 10_000_000_000)
            return pause
        }
    }

    /// Raises it; where it cannot be, it is tried again after a while, and commits go on meanwhile.
    func raiseCeilingNow(_ patience: inout CeilingPatience) {
        guard let ceiling = state.withLock({ $0.ceiling }) else { return }
        let hadFailed = patience.pause > 0
        do throws(StateError) {
            let revision = try ceiling.raise()
            patience.pause = 0
            if hadFailed { ceiling.onFailure(nil) }
            _ = answer(.raised(revision))
        } catch {
            let due = clinux_monotonic_nanoseconds() + patience.next()
            if !hadFailed { ceiling.onFailure(error.message) }
            submit(.reserve(at: due))
        }
    }
}
