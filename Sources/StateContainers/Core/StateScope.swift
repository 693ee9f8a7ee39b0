import CLinux
import StateEngine

/// A separate set of values for containers in memory: in a scope each container starts with its
/// default value.
///
/// Tests that run in parallel can share static containers without seeing each other's values:
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
/// The scope is a task-local: tasks started in a scope are in it. Containers in a keyspace are not
/// divided by scopes; open another keyspace instead.
public final class StateScope: Sendable {
    @TaskLocal package static var current: StateScope?

    /// The cores and queues of this scope by container.
    ///
    /// The container is retained, so that no other gets its address.
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

    /// The registration of a container in this scope, made on first access.
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
        /// Ends the changes; receivers may still retain the core.
        let close: @Sendable () -> Void
    }
}

/// A container's core, and the queue of the changes that it takes.
@usableFromInline
package final class Registration<Value: Sendable>: Sendable {
    @usableFromInline package let core: StateCore<Value>
    package let queue: ChangeQueue

    init(_ core: StateCore<Value>, _ queue: ChangeQueue) {
        self.core = core
        self.queue = queue
    }
}
