import StateEngine

/// Who may compute on the newest value of a container: one at a time, threads and tasks, first come first served.
///
/// A lock that a task may wait for, and that may be held while a commit is under way.
final class Turn: Sendable {
    private struct Queue {
        var isTaken = false
        var waiting: [Answer] = []
    }

    private let queue = StateLock(Queue())

    func take() { next()?.wait() }

    nonisolated(nonsending) func take() async { await next()?.wait() }

    func give() {
        let next = queue.withLock { queue -> Answer? in
            guard queue.waiting.isEmpty else { return queue.waiting.removeFirst() }
            queue.isTaken = false
            return nil
        }
        // It goes from hand to hand: nobody overtakes who waits.
        next?.put(.success(0))
    }

    /// What to wait for; nil where the turn is the caller's.
    private func next() -> Answer? {
        queue.withLock { queue in
            guard queue.isTaken else {
                queue.isTaken = true
                return nil
            }
            let next = Answer()
            queue.waiting.append(next)
            return next
        }
    }
}
