public import StateContainers
public import StateModel

/// A container whose value is an entry of the daemon.
///
/// Any process may have one for the same key, and each sees the others' changes.
///
/// It is never ahead of the daemon: `modify` returns once the daemon has committed the change,
/// which listeners in this process have received by then. If another process has changed the value
/// meanwhile, the body runs again on the new value, so it must have no side effects. While the
/// daemon is unavailable, `value` is the last one seen, ``PersistentState/status`` says since when,
/// and a write throws ``StateError/Code/unreachable``. A write in progress when the connection
/// broke throws ``StateError/Code/outcomeUnknown``. When the daemon is back, the container catches
/// up by itself.
///
/// ```swift
/// let volume = try RemoteState(0.5, key: "audio/volume")
/// try volume ~> 0.7
/// ```
public final class RemoteState<Value: Codable & Sendable>: PersistentState<Value>, FinalContainer,
    @unchecked Sendable
{
    // Constant: the proof of `@unchecked Sendable`.
    /// The connection to the daemon; it stays open as long as a container on it lives.
    public let keyspace: RemoteKeyspace

    /// Makes a container of the daemon's entry `key`; blocks until its value is loaded.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if the entry is absent.
    ///   - key: The key of the entry.
    ///   - keyspace: The daemon; nil: the one that `statectl` uses, on the connection that the
    ///     process shares.
    ///   - codec: Converts a value to bytes and back.
    ///   - acceptsUnreadable: As in ``PersistentState``.
    /// - Throws: ``StateError/Code/unreachable`` if no daemon answers; else as
    ///   ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: RemoteKeyspace? = nil,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        let chosen = try RemoteKeyspace.shared(unless: keyspace)
        self.keyspace = chosen
        try super.init(
            defaultValue,
            key: key,
            in: chosen,
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
    /// The keyspace that the caller named, or else the shared one.
    fileprivate static func shared(
        unless named: RemoteKeyspace?
    ) throws(StateError) -> RemoteKeyspace {
        if let named { return named }
        return try shared()
    }
}
