import Dispatch
import StateEngine

/// The slot of one listener: the change that it has not received yet.
///
/// Changes that arrive during a call or a pause are merged into the waiting one. So the listener
/// always gets the last change, however slow it is.
final class Delivery: Receiver, NotifierJob {
    private struct Slot {
        var pending: ChangeRecord?
        /// The scope to deliver in, retained while a change waits.
        var scope: StateScope?
        /// Whether the waiting change is the listener's initial value.
        var isBeginning = false
        /// Whether a call is running or scheduled.
        var isAtWork = false
        var isPaused = false
        var isEnded = false

        /// Takes the next change; nil: nothing is to be delivered now.
        mutating func next() -> (ChangeRecord, StateScope?)? {
            isAtWork = pending != nil && !isPaused && !isEnded
            guard isAtWork else { return nil }
            isBeginning = false
            return pending.take().map { ($0, scope.take()) }
        }

        /// Takes a change that nothing keeps from being delivered by the caller at once.
        mutating func mayPass() -> Bool {
            guard pending == nil, !isAtWork, !isPaused, !isEnded else { return false }
            isAtWork = true
            return true
        }

        /// Whether the caller must schedule a delivery.
        mutating func isDue() -> Bool {
            guard !isAtWork, pending != nil, !isPaused, !isEnded else { return false }
            isAtWork = true
            return true
        }
    }

    private let key: Key
    private let who: String
    private let queue: StateQueue
    /// The actor that the calls run on, instead of the queue.
    private let actor: (any Actor)?
    /// Weak, because the scope may retain the container, which retains this object.
    private weak let scope: StateScope?
    /// Whether there was a scope: looking at a weak reference that is nil costs, too.
    private let isScoped: Bool
    /// The listener, if it was attached and still exists.
    weak let listener: (any AnyObject & Sendable)?
    /// The identity of the attached listener, even if it is gone.
    let identity: ObjectIdentifier?
    private let call: @Sendable (ChangeRecord) -> Void
    let isInline: Bool
    private let slot = StateLock(Slot())

    /// Makes the slot of `listener`, which may go away and which `call` calls; traces show it as
    /// `who`.
    init(
        _ key: Key,
        on queue: StateQueue,
        actor: (any Actor)? = nil,
        to listener: (any AnyObject & Sendable)? = nil,
        who: String,
        _ call: @escaping @Sendable (ChangeRecord) -> Void
    ) {
        self.key = key
        self.who = who
        self.queue = queue
        self.actor = actor
        let scope = StateScope.current
        self.scope = scope
        isScoped = scope != nil
        self.listener = listener
        identity = listener.map(ObjectIdentifier.init)
        self.call = call
        isInline = if actor == nil, case .inline = queue { true } else { false }
    }

    var subject: (key: Key, who: String) { (key, who) }
    var isGone: Bool { identity != nil && listener == nil }

    // MARK: Waiting changes

    func begin(_ current: ChangeRecord) {
        slot.withLock { slot in
            slot.pending = current
            slot.scope = scope
            slot.isBeginning = true
        }
    }

    func put(_ change: ChangeRecord) {
        if isInline, slot.withLock({ $0.mayPass() }) {
            change.deliver(in: isScoped ? scope : nil, call)
            if finish() { schedule() }
            return
        }
        update { slot in
            guard !slot.isEnded else { return }
            slot.scope = scope
            if slot.isBeginning {
                slot.pending = change.beginning
            } else if let pending = slot.pending {
                slot.pending = change.merging(pending)
            } else {
                slot.pending = change
            }
        }
    }

    /// Schedules the delivery of the waiting change, if there is one.
    func start() { update { _ in } }

    func pause() { update { $0.isPaused = true } }

    func resume() { update { $0.isPaused = false } }

    func end() {
        update { slot in
            slot.isEnded = true
            slot.pending = nil
            slot.scope = nil
        }
    }

    private func update(_ change: @Sendable (inout Slot) -> Void) {
        let (isDue, old) = slot.withLock { slot in
            // Handed out, so that an old value or scope is not freed under the lock.
            let old = (slot.pending, slot.scope)
            change(&slot)
            return (slot.isDue(), old)
        }
        _ = old
        if isDue { schedule() }
    }

    // MARK: Delivering

    private func schedule() {
        if let actor {
            // Detached: the writer's priority and scope are not those of the observer.
            Task.detached { await self.run(on: actor) }
            return
        }
        switch queue {
        case .notifier: Notifier.shared.run(self)
        case .inline: while deliverNext() {}
        case .main: DispatchQueue.main.async { self.run() }
        case .queue(let queue): queue.async { self.run() }
        }
    }

    private func run(on actor: isolated any Actor) { run() }

    /// Makes one call; what arrived meanwhile waits behind the other listeners.
    func run() {
        if deliverNext() { schedule() }
    }

    /// - Returns: Whether there is more to deliver.
    private func deliverNext() -> Bool {
        guard let (change, scope) = slot.withLock({ $0.next() }) else { return false }
        change.deliver(in: scope, call)
        return finish()
    }

    /// Ends a call.
    ///
    /// - Returns: Whether there is more to deliver.
    private func finish() -> Bool {
        slot.withLock { slot in
            slot.isAtWork = false
            return slot.isDue()
        }
    }
}
