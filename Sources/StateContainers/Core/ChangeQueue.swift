import CLinux
import StateEngine

/// The changes that one container takes, on their way to its `didModify`: ascending, one at a time, with no lock held.
///
/// The thread that finds it idle drains it; after 64 changes the notifier goes on, so that no writer is kept for ever.
@usableFromInline
package final class ChangeQueue: NotifierJob {
    /// How many changes may wait.
    package static var limit: Int { 1_024 }
    /// How many a writer tells of before the notifier goes on.
    private static var turn: Int { 64 }

    private struct Waiting {
        var changes = Ring<ChangeRecord>()
        var isDraining = false
        /// Where they are told, kept as long as there are any.
        var scope: StateScope?
        /// Writers that wait for room.
        var writers: [BlockingSemaphore] = []
        /// The container.
        var key: Key?
        /// Its `didModify`.
        var take: Take = { _ in }
    }

    private typealias Take = @Sendable (ChangeRecord) -> Void

    private let waiting = StateLock(Waiting())
    /// Whom the container's `didModify` tells.
    package let listeners = ListenerList()
    /// It keeps the container, and so this.
    private weak let scope: StateScope?

    /// Makes an empty queue, whose changes are told in `scope`.
    package init(scope: StateScope? = nil) { self.scope = scope }

    /// From now on changes go to `take`, the `didModify` of the container of that key.
    package func connect(
        _ key: Key,
        _ take: @escaping @Sendable (ChangeRecord) -> Void
    ) {
        waiting.withLock { waiting in
            waiting.key = key
            waiting.take = take
        }
    }

    package var subject: (key: Key, who: String) {
        (waiting.withLock { $0.key } ?? "none", "didModify")
    }

    /// Whether one more change may be put.
    package var hasRoom: Bool { waiting.withLock { $0.changes.count < Self.limit } }

    /// Waits until there is room; not at all for a thread that is telling of a change, for that may be what is waited for.
    package func waitForRoom() {
        guard clinux_depth() == 0 else { return }
        while true {
            let semaphore = BlockingSemaphore()
            let waits = waiting.withLock { waiting in
                guard waiting.changes.count >= Self.limit else { return false }
                waiting.writers.append(semaphore)
                return true
            }
            guard waits else { return }
            semaphore.wait()
        }
    }

    /// Puts a change behind the others; beyond the limit one that `merges`, for its writer cannot wait, becomes one with the last.
    ///
    /// Called under the lock of the core, so that the order is that of the changes.
    package func put(_ change: ChangeRecord, merges: Bool = false) {
        waiting.withLock { waiting in
            if let scope { waiting.scope = scope }
            if merges, waiting.changes.count >= Self.limit {
                waiting.changes.replaceLast { change.merging($0) }
            } else {
                waiting.changes.append(change)
            }
        }
    }

    /// Tells of what waits, unless somebody is at it.
    package func drain() {
        if begin() { run() }
    }

    /// Has the notifier tell of what waits, unless somebody is at it.
    package func drainLater() {
        if begin() { Notifier.shared.run(self) }
    }

    private func begin() -> Bool {
        waiting.withLock { waiting in
            guard !waiting.isDraining, waiting.changes.count > 0 else { return false }
            waiting.isDraining = true
            return true
        }
    }

    /// Tells of some of what waits, the one who is at it.
    package func run() {
        for _ in 0..<Self.turn {
            guard let (change, take, scope) = next() else { return }
            change.tell(in: scope, take)
        }
        Notifier.shared.run(self)
    }

    private func next() -> (ChangeRecord, Take, StateScope?)? {
        let (change, take, scope, writers) = waiting.withLock {
            waiting -> (ChangeRecord?, Take, StateScope?, [BlockingSemaphore]) in
            let change = waiting.changes.popFirst()
            // Handed out, so that what is in the scope is not freed under the lock.
            let scope = waiting.scope
            if change == nil {
                waiting.isDraining = false
                waiting.scope = nil
            }
            guard waiting.changes.count < Self.limit else {
                return (change, waiting.take, scope, [])
            }
            defer { waiting.writers = [] }
            return (change, waiting.take, scope, waiting.writers)
        }
        for writer in writers { writer.signal() }
        return change.map { ($0, take, scope) }
    }
}
