/// A set of named values with one order of commits: embedded, or in the daemon.
public protocol Keyspace: AnyObject, Sendable {
    /// The identity of the store.
    var epoch: Epoch { get }

    /// Makes all the mutations one commit, or none of them.
    ///
    /// - Parameters:
    ///   - mutations: Made in order; each sees the effects of those before it.
    ///   - completion: Called once, from another thread or before the call returns: with the
    ///     revision once the commit is durable (that of the last commit if nothing had to change),
    ///     or with the error if nothing has changed. Every ``watch(_:)`` of this keyspace received
    ///     the commit before. It must not wait for the keyspace.
    /// - Returns: The revision that the commit has if it succeeds, so that the next may be computed
    ///   on it; nil if commits are not ordered in this process, or nothing has to change.
    @discardableResult
    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64?

    /// The entry of `key` on stable storage; nil if there is none.
    func entry(for key: Key) throws(StateError) -> Entry?

    /// The entries that match `pattern` after `key`, in key order, at most `limit`.
    func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) throws(StateError) -> [(
        key: Key, entry: Entry
    )]

    /// Begins to watch keys: none yet, only those that are included afterwards.
    ///
    /// - Parameter receive: Receives all events in order, one call at a time, on any thread, with
    ///   no lock held; it must not wait for the keyspace.
    /// - Returns: The watch, which runs until it is cancelled or released.
    func watch(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) -> any KeyspaceWatch
}

/// A watch of the keys of some patterns in a keyspace.
public protocol KeyspaceWatch: AnyObject, Sendable {
    /// Watches the keys of `patterns` too: delivers their state as
    /// ``KeyspaceEvent/state(_:patterns:_:)``, then each commit.
    ///
    /// Patterns that are watched already are counted, and their state is delivered again; the
    /// states of several calls may be delivered as one.
    func include(_ patterns: [Pattern])

    /// Watches the keys of `patterns` once less.
    func exclude(_ patterns: [Pattern])

    /// Ends the watch: `receive` is not called any more after a running call has returned.
    func cancel()
}

extension Keyspace {
    /// Makes all the mutations one commit and waits until it is durable.
    ///
    /// - Returns: Its revision.
    /// - Throws: The error of the commit; nothing has changed.
    @discardableResult
    public func apply(_ mutations: [Mutation]) throws(StateError) -> Int64 {
        let answer = Answer()
        guard let keyspace = self as? any WaitableKeyspace else {
            submit(mutations) { answer.put($0) }
            return try answer.wait().get()
        }
        keyspace.checkMayWait()
        keyspace.submit(mutations, commitsOnCaller: true) { answer.put($0) }
        keyspace.commitOnCaller()
        return try answer.wait().get()
    }

    /// Makes all the mutations one commit; returns when it is durable.
    ///
    /// - Returns: Its revision.
    /// - Throws: The error of the commit; nothing has changed.
    @discardableResult
    public func apply(_ mutations: [Mutation]) async throws(StateError) -> Int64 {
        let result = await withCheckedContinuation { continuation in
            submit(mutations) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }
}
