/// A keyspace that knows who waits for it: one of this package.
package protocol WaitableKeyspace: Keyspace {
    /// As ``Keyspace/submit(_:completion:)``, for a thread that may wait for the answer; by default the same.
    ///
    /// - Parameters:
    ///   - mutations: As there.
    ///   - commitsOnCaller: Whether the caller calls ``commitOnCaller()`` next, in any case, and then waits: only then may the
    ///     keyspace leave the commit to it.
    ///   - completion: As there.
    /// - Returns: As there.
    @discardableResult
    func submit(
        _ mutations: [Mutation],
        commitsOnCaller: Bool,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64?

    /// Commits what was submitted on this thread, and delivers and answers it, unless somebody else does.
    ///
    /// - Complexity: One sync at most. By default nothing: others commit.
    func commitOnCaller()

    /// Ends the process if the keyspace waits for the calling thread, which is about to wait for it: in a completion or a receiver.
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
