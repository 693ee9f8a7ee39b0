import CLinux
import StateEngine

/// A world of its own for containers in memory: in a scope each of them begins anew with its default value.
///
/// So tests that run in parallel share static containers without seeing each other's values:
///
/// ```swift
/// @Test func `the counter begins at 0`() {
///     StateScope.run {
///         AppState.counter ~> 5
///         #expect(AppState.counter.value == 5)
///     }
/// }
/// ```
///
/// It is a task-local: tasks that are begun in a scope are in it. Containers in a keyspace are not divided: open another one.
public final class StateScope: Sendable {
    @TaskLocal package static var current: StateScope?

    /// The cores and queues of this scope by container; the container is kept too, so that no other takes its address.
    private let registrations = StateLock<[ObjectIdentifier: Entry]>([:])

    init() { clinux_note_scope() }

    deinit {
        for entry in registrations.withLock({ $0.values.map { $0 } }) { entry.close() }
    }

    /// Runs `body` in a new scope.
    public static func run<R>(_ body: () throws -> R) rethrows -> R {
        try $current.withValue(StateScope(), operation: body)
    }

    /// Runs `body` in a new scope.
    public nonisolated(nonsending) static func run<R>(
        _ body: nonisolated(nonsending) () async throws -> R
    ) async rethrows -> R {
        try await $current.withValue(StateScope(), operation: body)
    }

    /// What a container has in this scope, made where it is the first look.
    func registration<Value>(
        of container: any AnyObject & Sendable,
        _ make: () -> Registration<Value>
    ) -> Registration<Value> {
        let place = ObjectIdentifier(container)
        if let registration = registrations.withLock({ $0[place]?.registration })
            as? Registration<Value>
        {
            return registration
        }
        let made = make()
        let registration = registrations.withLock { registrations in
            let entry =
                registrations[place]
                ?? Entry(container: container, registration: made) {
                    made.core.unregister(made.queue)
                }
            registrations[place] = entry
            return entry.registration
        }
        return registration as? Registration<Value> ?? made
    }

    private struct Entry: Sendable {
        let container: any AnyObject & Sendable
        let registration: any AnyObject & Sendable
        /// No more changes; who is told of them may keep the core.
        let close: @Sendable () -> Void
    }
}

/// Where a container is: its value, and the changes that it takes.
@usableFromInline
package final class Registration<Value: Sendable>: Sendable {
    @usableFromInline package let core: StateCore<Value>
    package let queue: ChangeQueue

    init(_ core: StateCore<Value>, _ queue: ChangeQueue) {
        self.core = core
        self.queue = queue
    }
}
