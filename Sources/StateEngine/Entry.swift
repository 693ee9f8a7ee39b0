/// A value with what is known of it.
public struct Entry: Hashable, Sendable {
    /// The bytes; empty is a value.
    public var value: [UInt8]
    /// The commit that last modified it.
    public var revision: Int64
    /// The commit that created it.
    public var created: Int64
    /// How many times it was set since created.
    public var version: Int64
    /// Wall time of the last modification in milliseconds since 1970.
    public var time: Int64
    /// The uid that created it.
    public var owner: UInt32
    /// Who wrote it.
    public var cause: Cause
}

/// What a caller asks of one key.
public enum Mutation: Hashable, Sendable {
    /// Sets the value; with a revision, only where the key was last modified at it (0: is absent).
    case set(Key, [UInt8], ifRevision: Int64? = nil)
    /// Deletes the entry, under the same condition.
    case delete(Key, ifRevision: Int64? = nil)
    /// Changes nothing, and refuses the transaction where the key was not last modified at the revision.
    case check(Key, revision: Int64)
}

/// A set of named values with one order of commits: embedded, or in the daemon.
public protocol Keyspace: AnyObject, Sendable {
    /// The identity of the store.
    var epoch: Epoch { get }

    /// Makes all the mutations one commit, or none of them.
    ///
    /// - Parameters:
    ///   - mutations: Done in their order; each sees what those before it did.
    ///   - completion: Called once, from another thread or before the call returns: with the revision once the commit is
    ///     durable (of the last commit, where nothing had to change), or with the error, nothing having changed.
    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    )

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
}

extension Keyspace {
    /// Makes all the mutations one commit and waits until it is durable.
    ///
    /// - Returns: Its revision.
    /// - Throws: What the commit failed with; nothing has changed.
    @discardableResult
    public func apply(_ mutations: [Mutation]) throws(StateError) -> Int64 {
        let answer = Answer()
        submit(mutations) { answer.put($0) }
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
