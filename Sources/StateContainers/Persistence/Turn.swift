import StateEngine

/// The right to compute on a container's newest value: one holder at a time, thread or task, in
/// order of request.
///
/// A lock that a task can wait for, and that can be held during a commit.
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
        // The turn passes directly to the first waiter, so nobody overtakes it.
        next?.put(.success(0))
    }

    /// The answer to wait for; nil if the caller now has the turn.
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
