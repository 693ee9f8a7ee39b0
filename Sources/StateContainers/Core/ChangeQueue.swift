import CLinux
import StateEngine

/// The queue of changes from one container to its `didModify`: ascending, one at a time, no lock
/// held.
///
/// The thread that finds it idle drains it. After 64 changes the notifier continues, so that no
/// writer is kept busy forever.
///
/// Everything is constant or under its lock, also in the subclasses: the proof of `@unchecked
/// Sendable`.
@usableFromInline
package class ChangeQueue: NotifierJob, @unchecked Sendable {
    /// How many changes may wait.
    package static var limit: Int { 1_024 }
    /// How many changes a writer delivers before the notifier continues.
    private static var turn: Int { 64 }

    private struct Waiting {
        var changes = Ring<ChangeRecord>()
        var isDraining = false
        /// The scope to deliver in, retained while changes wait.
        var scope: StateScope?
        /// The writers that wait for room.
        var writers: [BlockingSemaphore] = []
        /// The container.
        var key: Key?
        /// Its `didModify`.
        var take: Take = { _ in }
    }

    private typealias Take = @Sendable (ChangeRecord) -> Void

    private let waiting = StateLock(Waiting())
    /// The receivers of the container's `didModify`.
    package final let listeners = ListenerList()
    /// Weak, because the scope retains the container, which retains this queue.
    private weak let scope: StateScope?

    /// Makes an empty queue whose changes are delivered in `scope`.
    init(scope: StateScope?) { self.scope = scope }

    /// Makes an empty queue.
    package convenience init() { self.init(scope: nil) }

    /// Sends changes to `take` from now on: the `didModify` of the container with that key.
    package final func connect(
        _ key: Key,
        _ take: @escaping @Sendable (ChangeRecord) -> Void
    ) {
        waiting.withLock { waiting in
            waiting.key = key
            waiting.take = take
        }
    }

    package final var subject: (key: Key, who: String) {
        (waiting.withLock { $0.key } ?? "none", "didModify")
    }

    /// Whether there is room for one more change.
    package var hasRoom: Bool { waiting.withLock { $0.changes.count < Self.limit } }

    /// Waits until there is room.
    ///
    /// Never blocks a thread that is delivering a change: that delivery may be what makes room.
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

    /// Appends a change.
    ///
    /// If the queue is full and `merges` is true, because the writer cannot wait, merges it with
    /// the last one.
    ///
    /// Called under the lock of the core, so the order is that of the changes.
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

    /// Delivers the waiting changes, unless a thread already does.
    package func drain() {
        if begin() { run() }
    }

    /// Makes the notifier deliver the waiting changes, unless a thread already does.
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

    /// Delivers some of the waiting changes; called by the thread that drains.
    package final func run() {
        for _ in 0..<Self.turn {
            guard let (change, take, scope) = next() else { return }
            change.deliver(in: scope, take)
        }
        Notifier.shared.run(self)
    }

    private func next() -> (ChangeRecord, Take, StateScope?)? {
        let (change, take, scope, writers) = waiting.withLock {
            waiting -> (ChangeRecord?, Take, StateScope?, [BlockingSemaphore]) in
            let change = waiting.changes.popFirst()
            // Handed out, so that the scope's contents are not freed under the lock.
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
