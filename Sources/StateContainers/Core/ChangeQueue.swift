import CLinux
import StateEngine
import Synchronization

/// The queue of changes from one container to its `didModify`: ascending, one at a time, no lock
/// held.
///
/// The thread that finds it idle drains it. After 64 changes the notifier continues, so that no
/// writer is kept busy forever.
///
/// Everything is constant from the first change on, or under its lock, also in the subclasses: the
/// proof of `@unchecked Sendable`.
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
    }

    /// The container; set before others see this queue.
    private var key: Key?
    /// Its `didModify`; set with ``key``.
    ///
    /// Not under the lock: a function that a lock returns is wrapped in a new one, each time.
    private var take: @Sendable (ChangeRecord) -> Void = { _ in }

    private let waiting = StateLock(Waiting())
    /// How many changes wait, for who has the lock of the core: only under it they get more.
    private let waitingCount = Atomic(0)
    /// The receivers of the container's `didModify`.
    package final let listeners = ListenerList()
    /// Weak, because the scope retains the container, which retains this queue.
    private weak let scope: StateScope?
    private let isScoped: Bool

    /// Makes an empty queue whose changes are delivered in `scope`.
    init(scope: StateScope?) {
        self.scope = scope
        isScoped = scope != nil
    }

    /// Makes an empty queue.
    package convenience init() { self.init(scope: nil) }

    /// Sends changes to `take`: the `didModify` of the container with that key.
    ///
    /// Called once, before the queue is registered.
    package final func connect(
        _ key: Key,
        _ take: @escaping @Sendable (ChangeRecord) -> Void
    ) {
        (self.key, self.take) = (key, take)
    }

    package final var subject: (key: Key, who: String) { (key ?? "none", "didModify") }

    /// Whether there is room for one more change.
    package var hasRoom: Bool { waitingCount.load(ordering: .relaxed) < Self.limit }

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

    /// Whether a change may be made without waiting, and without looking for a feedback loop.
    @usableFromInline
    static func haveRoom(_ queues: [ChangeQueue]) -> Bool {
        let depth = clinux_depth()
        guard depth == 0 else { return depth <= Feedback.limit }
        // By index: an iterator would retain the array and each queue.
        for index in queues.indices where !queues[index].hasRoom { return false }
        return true
    }

    /// Appends a change.
    ///
    /// If the queue is full and `merges` is true, because the writer cannot wait, merges it with
    /// the last one.
    ///
    /// Called under the lock of the core, so the order is that of the changes.
    @usableFromInline
    package func put(_ change: ChangeRecord, merges: Bool = false) {
        waiting.withLock { waiting in
            if let scope { waiting.scope = scope }
            if merges, waiting.changes.count >= Self.limit {
                // Who changes the value still has the one that goes: the one before the change.
                _ = waiting.changes.replaceLast { change.merging($0) }
            } else {
                waiting.changes.append(change)
            }
            waitingCount.store(waiting.changes.count, ordering: .relaxed)
        }
    }

    /// Appends a change, or lets the caller deliver it, who must do so after the lock of the core.
    ///
    /// - Returns: Whether the caller must call ``deliver(_:)`` with it.
    @usableFromInline
    func pass(_ change: ChangeRecord) -> Bool {
        let passes =
            !isScoped
            && waiting.withLock { waiting in
                guard !waiting.isDraining, waiting.changes.count == 0 else { return false }
                waiting.isDraining = true
                return true
            }
        if !passes { put(change) }
        return passes
    }

    /// Delivers a change that the queue has passed back, and what came meanwhile.
    @usableFromInline
    final func deliver(_ change: ChangeRecord) {
        change.deliver(in: nil, take)
        if !endIfEmpty() { deliver(next(), from: 2) }
    }

    /// Ends the delivering if no change waits; returns whether it did.
    ///
    /// ``next(begins:)`` does the same, but hands out what has to be retained and released.
    private func endIfEmpty() -> Bool {
        waiting.withLock { waiting in
            guard waiting.changes.count == 0 else { return false }
            waiting.isDraining = false
            return true
        }
    }

    /// Delivers the waiting changes, unless a thread already does.
    @usableFromInline
    package func drain() { deliver(next(begins: true)) }

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
    package final func run() { deliver(next()) }

    /// Delivers `first`, which is number `start` of this turn, and what waits behind it.
    private func deliver(_ first: (ChangeRecord, StateScope?)?, from start: Int = 1) {
        var waiting = first
        for count in start...Self.turn {
            guard let (change, scope) = waiting else { return }
            change.deliver(in: scope, take)
            if count < Self.turn { waiting = next() }
        }
        Notifier.shared.run(self)
    }

    /// The next change for the thread that drains.
    ///
    /// - Parameter begins: Whether the caller becomes that thread, unless another one is.
    /// - Returns: The change and its scope; nil if no change waits, or another thread drains.
    private func next(begins: Bool = false) -> (ChangeRecord, StateScope?)? {
        let (change, scope, writers) = waiting.withLock {
            waiting -> (ChangeRecord?, StateScope?, [BlockingSemaphore]) in
            if begins {
                guard !waiting.isDraining, waiting.changes.count > 0 else {
                    return (nil, nil, [])
                }
                waiting.isDraining = true
            }
            let change = waiting.changes.popFirst()
            waitingCount.store(waiting.changes.count, ordering: .relaxed)
            // Handed out, so that the scope's contents are not freed under the lock.
            let scope = waiting.scope
            if change == nil {
                waiting.isDraining = false
                waiting.scope = nil
            }
            guard waiting.changes.count < Self.limit else {
                return (change, scope, [])
            }
            defer { waiting.writers = [] }
            return (change, scope, waiting.writers)
        }
        for writer in writers { writer.signal() }
        return change.map { ($0, scope) }
    }
}
