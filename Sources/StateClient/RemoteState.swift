public import StateContainers
public import StateModel

/// A container whose value is the daemon's: any process may hold one on the same key, and each sees what the others do.
///
/// It is never ahead of the daemon: `modify` returns when the daemon has committed the change, which listeners here have been told of
/// by then. Where another process changed the value meanwhile the body runs again on the new one, so it only computes.
/// While the daemon is away, `value` is the last one that was seen, ``PersistentState/status`` says since when, and a write is
/// refused with ``StateError/Code/unreachable``; one that was under way when the connection broke has
/// ``StateError/Code/outcomeUnknown``. When the daemon is back, the container catches up by itself.
///
/// ```swift
/// let volume = try RemoteState(0.5, key: "audio/volume")
/// try volume ~> 0.7
/// ```
public final class RemoteState<Value: Codable & Sendable>: PersistentState<Value>, FinalContainer,
    @unchecked Sendable
{
    // Constant: the proof of `@unchecked Sendable`.
    /// The connection to the daemon; open as long as a container on it lives.
    public let keyspace: RemoteKeyspace

    /// A container of the daemon's entry `key`; waits for its value.
    ///
    /// - Parameters:
    ///   - defaultValue: What it holds where the entry is absent.
    ///   - key: The entry.
    ///   - keyspace: Which daemon; nil: the one that `statectl` would find, on the connection that the process shares.
    ///   - codec: How a value becomes bytes.
    ///   - acceptsUnreadable: As of ``PersistentState``.
    /// - Throws: ``StateError/Code/unreachable`` where no daemon answers; else as
    ///   ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: RemoteKeyspace? = nil,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        let home = try RemoteKeyspace.shared(unless: keyspace)
        self.keyspace = home
        try super.init(
            defaultValue,
            key: key,
            in: home,
            codec: codec,
            acceptsUnreadable: acceptsUnreadable
        )
    }

    /// The same without blocking a thread.
    public nonisolated(nonsending) static func attached(
        _ defaultValue: Value,
        key: Key,
        in keyspace: RemoteKeyspace? = nil,
        codec: StateCodec<Value> = .standard
    ) async throws(StateError) -> RemoteState {
        try await RemoteState(attaching: defaultValue, key, .shared(unless: keyspace), codec)
    }

    private init(
        attaching defaultValue: Value,
        _ key: Key,
        _ keyspace: RemoteKeyspace,
        _ codec: StateCodec<Value>
    ) async throws(StateError) {
        self.keyspace = keyspace
        try await super.init(attaching: defaultValue, key: key, in: keyspace, codec: codec)
    }
}

extension RemoteKeyspace {
    /// The one that the caller named, or else that of the process.
    fileprivate static func shared(
        unless named: RemoteKeyspace?
    ) throws(StateError) -> RemoteKeyspace {
        if let named { return named }
        return try shared()
    }
}
