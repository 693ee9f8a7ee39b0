import CLinux
import StateEngine

extension StateCore {
    /// Has `receiver` told of the changes that `queue` takes, unless one that is the same is told already.
    ///
    /// With what it begins and which change is its first is settled in one step: none is lost in between, and none is told that is older.
    ///
    /// - Returns: The one that is told.
    func join(
        _ receiver: any Receiver,
        to queue: ChangeQueue,
        from beginning: Beginning,
        unless isSame: @Sendable (any Receiver) -> Bool = { _ in false }
    ) -> any Receiver {
        checkBody()
        let mark = Unmanaged.passUnretained(self).toOpaque()
        let depth = clinux_depth()
        return published.withLock { published in
            // A receiver of a part looks at the value, with code that is not ours.
            clinux_set_body(mark)
            defer { clinux_set_body(nil) }
            let listeners = queue.listeners
            let told = listeners.add(receiver, after: published.publishedCount, unless: isSame)
            guard told === receiver else { return told }
            published.add(queue)
            let current = beginning.change(published.value, published.revision, depth: depth)
            if let current { receiver.begin(current) }
            return told
        }
    }

    /// Whether a change is told, rather than made in place.
    package final var isTold: Bool { published.withLock { !$0.queues.isEmpty } }

    /// No longer has `queue` take changes where nobody is left whom it tells: the next is made in place again.
    ///
    /// In the body of a `modify`, where an observation may be released, it is left to the next change.
    func unregisterIdle(_ queue: ChangeQueue) {
        guard clinux_body() == nil else { return }
        published.withLock { published in
            if queue.listeners.isEmpty { published.remove(queue) }
        }
        // A writer that has put a change but not told of it yet no longer finds the queue.
        queue.drainLater()
    }
}
