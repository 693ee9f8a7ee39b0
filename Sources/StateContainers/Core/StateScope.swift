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
    private let seats = StateLock<[ObjectIdentifier: Entry]>([:])

    init() { clinux_note_scope() }

    deinit {
        for entry in seats.withLock({ $0.values.map { $0 } }) { entry.close() }
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
    func seat<Value>(
        of container: any AnyObject & Sendable,
        _ make: () -> Seat<Value>
    ) -> Seat<Value> {
        let place = ObjectIdentifier(container)
        if let seat = seats.withLock({ $0[place]?.seat }) as? Seat<Value> { return seat }
        let made = make()
        let seat = seats.withLock { seats in
            let entry =
                seats[place]
                ?? Entry(container: container, seat: made) { made.core.unregister(made.queue) }
            seats[place] = entry
            return entry.seat
        }
        return seat as? Seat<Value> ?? made
    }

    private struct Entry: Sendable {
        let container: any AnyObject & Sendable
        let seat: any AnyObject & Sendable
        /// No more changes; who is told of them may keep the core.
        let close: @Sendable () -> Void
    }
}

/// Where a container is: its value, and the changes that it takes.
@usableFromInline
package final class Seat<Value: Sendable>: Sendable {
    @usableFromInline package let core: StateCore<Value>
    package let queue: ChangeQueue

    init(_ core: StateCore<Value>, _ queue: ChangeQueue) {
        self.core = core
        self.queue = queue
    }
}
