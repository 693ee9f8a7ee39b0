import CLinux
import StateEngine

extension StateCore {
    /// Delivers the changes that `queue` takes to `receiver`, unless one for the same listener is
    /// already in the list.
    ///
    /// The first value and the first change are settled in one step: no change is lost in between,
    /// and none is older.
    ///
    /// - Returns: The receiver that is in the list.
    func join(
        _ receiver: any Receiver,
        to queue: ChangeQueue,
        from beginning: Beginning
    ) -> any Receiver {
        checkBody()
        let owner = Unmanaged.passUnretained(self).toOpaque()
        let depth = clinux_depth()
        return adding {
            published.withLock { published in
                clinux_set_body(owner)
                defer { clinux_set_body(nil) }
                let listeners = queue.listeners
                let joined = listeners.add(receiver, after: published.publishedCount)
                guard joined === receiver else { return joined }
                published.add(queue)
                let current = beginning.change(published.value, published.revision, depth: depth)
                if let current { receiver.begin(current) }
                return joined
            }
        }
    }

    /// Whether changes are published, not made in place.
    package final var publishesChanges: Bool { published.withLock { !$0.queues.isEmpty } }

    /// Unregisters `queue` if it has no receivers left: the next change is made in place again.
    ///
    /// In the body of a `modify`, where an observation may be released, the next change does this
    /// instead.
    func unregisterIdle(_ queue: ChangeQueue) {
        guard clinux_body() == nil else { return }
        published.withLock { published in
            if queue.listeners.isEmpty { published.remove(queue) }
        }
        noteRemoval()
        // A writer that has put a change but not delivered it yet no longer finds the queue.
        queue.drainLater()
    }
}
