import StateContainers
import StateEngine
import StateTestSupport

/// What `body` gives, which blocks its thread: one of its own, for there are few that run tasks.
func elsewhere<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
    await withCheckedContinuation { continuation in
        WorkerThread(name: "test-elsewhere").start {
            continuation.resume(returning: body())
        }
    }
}

/// What was told, for a test to wait for.
final class Told<Value: Sendable>: Sendable {
    let changes = Observed<[StateChange<Value>]>([])

    func take(_ change: StateChange<Value>) { changes.update { $0.append(change) } }

    /// Whether what was told last becomes what `condition` asks for.
    func rests(where condition: (Value) -> Bool) -> Bool {
        changes.wait { $0.last.map { condition($0.new) } ?? false }
    }
}

extension Told where Value: Equatable {
    /// Whether each change begins where the one before it ended, in ascending order.
    var isChain: Bool {
        let changes = changes.current
        return zip(changes, changes.dropFirst()).allSatisfy { before, after in
            after.revision.isNewer(than: before.revision) && after.old == before.new
        }
    }
}

/// A listener that keeps what it was told.
final class Listener: StateListener {
    let told = Told<Int>()
    let stateListenerQueue: StateQueue

    init(on queue: StateQueue = .notifier) { stateListenerQueue = queue }

    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    ) {
        if let change = change as? StateChange<Int> { told.take(change) }
    }
}

/// A way that is shut until it is opened.
final class Gate: Sendable {
    private let isOpen = Observed(false)
    private let passing = Observed(0)

    func open() { isOpen.update { $0 = true } }

    /// Waits until it is open.
    func pass() {
        passing.update { $0 += 1 }
        _ = isOpen.wait(seconds: 300) { $0 }
    }

    /// Waits until so many came to it.
    func isReached(by count: Int = 1) -> Bool { passing.wait { $0 >= count } }
}

extension MonitoredState {
    /// Whether changes are told, rather than made in place.
    var isTold: Bool { registration.core.publishesChanges }
}
