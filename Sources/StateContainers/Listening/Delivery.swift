import Dispatch
import StateEngine

/// The one slot of a listener: what it has not been told of yet, on the way to it.
///
/// What comes while it is at work, or paused, becomes one change with what waits; so it rests on the last one, whatever it is slow at.
final class Delivery: Receiver, NotifierJob {
    private struct Slot {
        var pending: ChangeRecord?
        /// Where it is told, kept as long as there is something to tell.
        var scope: StateScope?
        /// Whether what waits is the value that the listener begins with.
        var isBeginning = false
        /// Whether a call is under way, or will be.
        var isAtWork = false
        var isPaused = false
        var isEnded = false

        /// Takes the change that is next; nil: nothing is to be told now.
        mutating func next() -> (ChangeRecord, StateScope?)? {
            isAtWork = pending != nil && !isPaused && !isEnded
            guard isAtWork else { return nil }
            isBeginning = false
            return pending.take().map { ($0, scope.take()) }
        }

        /// Whether somebody must see to it that what waits is told.
        mutating func isDue() -> Bool {
            guard !isAtWork, pending != nil, !isPaused, !isEnded else { return false }
            isAtWork = true
            return true
        }
    }

    private let key: Key
    private let who: String
    private let queue: StateQueue
    /// It may keep the container, and so this.
    private weak let scope: StateScope?
    /// Whom it tells, where it was attached and is there still.
    weak let listener: (any StateListener)?
    /// Which one it was attached for, also where it is gone.
    let identity: ObjectIdentifier?
    private let call: @Sendable (ChangeRecord) -> Void
    private let slot = StateLock(Slot())

    /// Makes the slot of `listener`, whom `call` calls, where it may go away; a trace names it by `who`.
    init(
        _ key: Key,
        on queue: StateQueue,
        to listener: (any StateListener)? = nil,
        who: String,
        _ call: @escaping @Sendable (ChangeRecord) -> Void
    ) {
        self.key = key
        self.who = who
        self.queue = queue
        scope = StateScope.current
        self.listener = listener
        identity = listener.map(ObjectIdentifier.init)
        self.call = call
    }

    var subject: (key: Key, who: String) { (key, who) }
    var isGone: Bool { identity != nil && listener == nil }

    // MARK: What is to be told

    func begin(_ current: ChangeRecord) {
        slot.withLock { slot in
            slot.pending = current
            slot.scope = scope
            slot.isBeginning = true
        }
    }

    func put(_ change: ChangeRecord) {
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

    /// Tells of what waits, where something does.
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
            // Handed out, so that a value or a scope that nobody needs is not freed under the lock.
            let old = (slot.pending, slot.scope)
            change(&slot)
            return (slot.isDue(), old)
        }
        _ = old
        if isDue { schedule() }
    }

    // MARK: Telling

    private func schedule() {
        switch queue {
        case .notifier: Notifier.shared.run(self)
        case .inline: while deliverNext() {}
        case .main: DispatchQueue.main.async { self.run() }
        case .queue(let queue): queue.async { self.run() }
        }
    }

    /// One call; what came meanwhile waits behind the other listeners.
    func run() {
        if deliverNext() { schedule() }
    }

    /// - Returns: Whether there is more to tell.
    private func deliverNext() -> Bool {
        guard let (change, scope) = slot.withLock({ $0.next() }) else { return false }
        change.tell(in: scope, call)
        return slot.withLock { slot in
            slot.isAtWork = false
            return slot.isDue()
        }
    }
}
