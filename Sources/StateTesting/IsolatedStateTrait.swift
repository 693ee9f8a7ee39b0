#if canImport(Testing)
import StateContainers
public import Testing

/// Runs a test in a `StateScope` of its own.
///
/// ```swift
/// @Test(.isolatedState) func `the counter begins at 0`() {
///     #expect(Session.counter.value == 0)
/// }
/// ```
///
/// Each static container begins with its default value. On a suite, this holds for each test of
/// it, and on a test with arguments for each of its cases.
public struct IsolatedStateTrait: TestTrait, SuiteTrait, TestScoping {
    let dependencies: @Sendable () -> StateDependencies

    /// The tests of a suite inherit it.
    public var isRecursive: Bool { true }

    /// Runs `function` in a new scope.
    public func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await StateScope.run(with: dependencies()) { try await function() }
    }
}

extension Trait where Self == IsolatedStateTrait {
    /// Runs the test in a `StateScope` of its own, with the present dependencies.
    public static var isolatedState: Self { Self { .current } }

    /// Runs the test in a `StateScope` of its own.
    ///
    /// - Parameter dependencies: Those of the scope; evaluated for each test.
    /// - Returns: The trait.
    public static func isolatedState(
        with dependencies: @autoclosure @escaping @Sendable () -> StateDependencies
    ) -> Self {
        Self(dependencies: dependencies)
    }
}
#endif
