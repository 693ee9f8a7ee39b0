/// A keyspace that supports committing on the caller's thread: one of this package.
package protocol WaitableKeyspace: Keyspace {
    /// As ``Keyspace/submit(_:completion:)``, for a thread that may wait for the answer; by default
    /// the same.
    ///
    /// - Parameters:
    ///   - mutations: As there.
    ///   - commitsOnCaller: Whether the caller calls ``commitOnCaller()`` next, in any case, and
    ///     then waits: only then may the keyspace leave the commit to it.
    ///   - completion: As there.
    /// - Returns: As there.
    @discardableResult
    func submit(
        _ mutations: [Mutation],
        commitsOnCaller: Bool,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64?

    /// Commits on this thread what was submitted, and delivers and answers it, unless another
    /// thread does.
    ///
    /// - Complexity: At most one sync. Does nothing by default: other threads commit.
    func commitOnCaller()

    /// Ends the process if the caller must not wait for the keyspace, because it runs in a
    /// completion handler or a receiver.
    func checkMayWait()
}

extension WaitableKeyspace {
    @discardableResult
    package func submit(
        _ mutations: [Mutation],
        commitsOnCaller: Bool,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        submit(mutations, completion: completion)
    }

    package func commitOnCaller() {}
}
