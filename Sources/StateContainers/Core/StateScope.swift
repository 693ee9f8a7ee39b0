import CLinux
import StateEngine

/// A separate set of values for static containers: in a scope each container starts with its
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
/// The scope is a task-local: tasks started in a scope are in it.
///
/// A container in a ``StateStorage`` has a keyspace in memory in each scope, which behaves as any
/// other; what the storage names is not opened. Containers in a keyspace that was opened by itself
/// are not divided; open another keyspace instead. ``StateDependencies`` belong to a scope too.
public final class StateScope: Sendable {
    @TaskLocal package static var current: StateScope?

    /// The cores and queues of this scope by container.
    ///
    /// The container is retained, so that no other gets its address.
    private let registrations = StateLock<[ObjectIdentifier: Entry]>([:])

    /// The keyspaces in memory by the names of the storages that they stand for.
    private let keyspaces = StateLock<[String: any Keyspace]>([:])
    let dependencies: StateDependencies

    init(_ dependencies: StateDependencies) {
        self.dependencies = dependencies
        clinux_note_scope()
    }

    deinit {
        for entry in registrations.withLock({ $0.values.map { $0 } }) { entry.close() }
    }

    /// Makes containers keep their initial values from now on, for scopes that begin later.
    ///
    /// Call it at the start of a program that changes containers before its first scope; a container
    /// whose initial value is gone ends the process in a scope, with a message. Tests need not: in a
    /// test process, and once there was a scope, all initial values are kept.
    public static func expect() { clinux_note_scope() }

    /// Whether containers keep their initial values.
    static var areExpected: Bool { clinux_has_scopes() != 0 || isTestProcess }

    /// Whether this is a program of tests: SwiftPM's on Linux, or its helper or Xcode's on macOS.
    private static let isTestProcess =
        CommandLine.arguments.first.map { program in
            [".xctest", "swiftpm-testing-helper", "/xctest"].contains { program.hasSuffix($0) }
        } ?? false

    /// Runs `body` in a new scope, with the dependencies of the present one.
    public static func run<R>(_ body: () throws -> R) rethrows -> R {
        try run(with: .current, body)
    }

    /// Runs `body` in a new scope, with the dependencies of the present one.
    public nonisolated(nonsending) static func run<R>(
        _ body: nonisolated(nonsending) () async throws -> R
    ) async rethrows -> R {
        try await run(with: .current, body)
    }

    /// Runs `body` in a new scope with these dependencies.
    public static func run<R>(
        with dependencies: StateDependencies,
        _ body: () throws -> R
    ) rethrows -> R {
        try $current.withValue(StateScope(dependencies), operation: body)
    }

    /// Runs `body` in a new scope with these dependencies.
    public nonisolated(nonsending) static func run<R>(
        with dependencies: StateDependencies,
        _ body: nonisolated(nonsending) () async throws -> R
    ) async rethrows -> R {
        try await $current.withValue(StateScope(dependencies), operation: body)
    }

    /// The keyspace that stands for the storage with this name.
    func keyspace(
        named name: String,
        _ make: () throws(StateError) -> any Keyspace
    ) throws(StateError) -> any Keyspace {
        if let opened = keyspaces.withLock({ $0[name] }) { return opened }
        let made = try make()
        return keyspaces.withLock { keyspaces in
            let first = keyspaces[name] ?? made
            keyspaces[name] = first
            return first
        }
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

/// The core and queue outside of scopes of a container that is late, or was made in a scope; made
/// when they are needed.
final class LateRegistration<Value: Sendable>: Sendable {
    private let made = StateLock<Registration<Value>?>(nil)

    deinit { if let made = made.withLock({ $0 }) { made.core.unregister(made.queue) } }

    func registration(
        of container: StateContainer<Value, some Error>,
        _ makeCore: () -> StateCore<Value>
    ) -> Registration<Value> {
        if let made = made.withLock({ $0 }) { return made }
        let new = Registration(makeCore(), ChangeQueue())
        let first = made.withLock { made in
            let first = made ?? new
            made = first
            return first
        }
        if first === new { container.connect(new) }
        return first
    }
}
