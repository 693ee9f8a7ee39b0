/// A set of named values with one order of commits: embedded, or in the daemon.
public protocol Keyspace: AnyObject, Sendable {
    /// The identity of the store.
    var epoch: Epoch { get }

    /// Makes all the mutations one commit, or none of them.
    ///
    /// - Parameters:
    ///   - mutations: Done in their order; each sees what those before it did.
    ///   - completion: Called once, from another thread or before the call returns: with the revision once the commit is
    ///     durable (of the last commit, where nothing had to change), or with the error, nothing having changed. Every
    ///     ``watch(_:)`` of this keyspace was told of the commit before. It may not wait for the keyspace.
    /// - Returns: The revision that the commit has if it succeeds, where commits are ordered in this process, so that the next
    ///   may be computed on it; nil where only the answer tells, or where nothing has to be changed.
    @discardableResult
    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64?

    /// The entry of `key` on stable storage; nil where there is none.
    func entry(for key: Key) throws(StateError) -> Entry?

    /// The entries that `pattern` means after `key`, in key order, `limit` at most.
    func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) throws(StateError) -> [(
        key: Key, entry: Entry
    )]

    /// Begins to follow keys: none yet, those that are included afterwards.
    ///
    /// - Parameter receive: Told of everything in order, one call at a time, on any thread, with no lock held; it may not
    ///   wait for the keyspace.
    /// - Returns: What follows, until it is cancelled or released.
    func watch(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) -> any KeyspaceWatch
}

/// What follows the keys of some patterns in a keyspace.
public protocol KeyspaceWatch: AnyObject, Sendable {
    /// Follows the keys of `patterns` too: their state comes as ``KeyspaceEvent/state(_:patterns:_:)``, then each commit.
    ///
    /// Patterns that are followed already are counted, and their state comes again; that of several calls may come as one.
    func include(_ patterns: [Pattern])

    /// Follows the keys of `patterns` once less.
    func exclude(_ patterns: [Pattern])

    /// Ends it: `receive` is not called any more once a call that is under way has returned.
    func cancel()
}

extension Keyspace {
    /// Makes all the mutations one commit and waits until it is durable.
    ///
    /// - Returns: Its revision.
    /// - Throws: What the commit failed with; nothing has changed.
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
    /// - Throws: What the commit failed with; nothing has changed.
    @discardableResult
    public func apply(_ mutations: [Mutation]) async throws(StateError) -> Int64 {
        let result = await withCheckedContinuation { continuation in
            submit(mutations) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }
}
