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
///
/// A subclass may override `didModify(_:)`.
open class RemoteState<Value: Codable & Sendable>: PersistentState<Value>, @unchecked Sendable {
    // Constant: the proof of `@unchecked Sendable`.
    /// The connection to the daemon; it stays open as long as a container on it lives.
    public final let keyspace: RemoteKeyspace

    /// Makes a container of the daemon's entry `key`; blocks until its value is loaded.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if the entry is absent.
    ///   - key: The key of the entry.
    ///   - keyspace: The daemon; nil: the one that `statectl` uses, on the connection that the
    ///     process shares.
    ///   - codec: Converts a value to bytes and back.
    ///   - acceptsUnreadable: As in ``PersistentState``.
    ///   - time: How long a value lives after each change by this container, in its transactions
    ///     too: then the daemon deletes the entry, and the value is the default. Nil: as the rule
    ///     of the key says.
    ///   - lifetime: Whose end deletes the entry: the process, or its connection to the daemon. If
    ///     the daemon restarts, the entry stays, as long as this process connects again within
    ///     `limits.graceSeconds`. Nil: as the rule of the key says. Not together with `time`.
    /// - Throws: ``StateError/Code/unreachable`` if no daemon answers; else as
    ///   ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: RemoteKeyspace? = nil,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false,
        expires time: Duration? = nil,
        lifetime: Lifetime? = nil
    ) throws(StateError) {
        let expiry = try Self.expiry(time, lifetime)
        let chosen = try RemoteKeyspace.shared(unless: keyspace)
        self.keyspace = chosen
        try super.init(
            defaultValue,
            key: key,
            in: chosen,
            codec: codec,
            acceptsUnreadable: acceptsUnreadable
        )
        self.expiry = expiry
    }

    /// The same in a task, which waits without blocking the thread.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: RemoteKeyspace? = nil,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false,
        expires time: Duration? = nil,
        lifetime: Lifetime? = nil
    ) async throws(StateError) {
        let expiry = try Self.expiry(time, lifetime)
        let chosen = try RemoteKeyspace.shared(unless: keyspace)
        self.keyspace = chosen
        try await super.init(
            defaultValue,
            key: key,
            in: chosen,
            codec: codec,
            acceptsUnreadable: acceptsUnreadable
        )
        self.expiry = expiry
    }
}

extension RemoteState: LibraryContainer {
    package static var ownClass: AnyClass { RemoteState<Value>.self }
}

extension RemoteState {
    /// When values end by themselves.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` for no time above 0, or for both.
    fileprivate static func expiry(
        _ time: Duration?,
        _ lifetime: Lifetime?
    ) throws(StateError) -> Expiry {
        guard let time else { return lifetime.map { .with($0) } ?? .ruled }
        guard lifetime == nil else {
            throw StateError(
                .err,
                "a value ends after a time or with its process or connection: name one"
            )
        }
        guard time > .zero else {
            throw StateError(.err, "a value must live longer than \(Quantity.text(time))")
        }
        return .expiring(after: time)
    }

    /// Replaces the value, which expires after a time of its own.
    ///
    /// - Parameters:
    ///   - newValue: The value.
    ///   - time: How long it lives, above 0; then the daemon deletes the entry, and the value is
    ///     the default.
    /// - Returns: The revision of the commit.
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public final func modify(
        _ newValue: Value,
        expires time: Duration
    ) throws(StateError) -> Revision {
        var change = plainChange
        change.expiry = try Self.expiry(time, nil)
        return try stateErrors { try commit(change) { $0 = newValue }.revision }
    }

    /// Changes the value in one step; the new one expires after a time of its own.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public final func modify<R>(
        expires time: Duration,
        _ body: (inout Value) -> R
    ) throws(StateError) -> R {
        var change = plainChange
        change.expiry = try Self.expiry(time, nil)
        return try stateErrors { try commit(change, body).result }
    }

    /// Replaces the value in a task; the new one expires after a time of its own.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) func modify(
        _ newValue: Value,
        expires time: Duration
    ) async throws(StateError) -> Revision {
        var change = plainChange
        change.expiry = try Self.expiry(time, nil)
        return try await commit(change) { $0 = newValue }.revision
    }

    /// The same in a task, for an error that `body` throws too: it changes nothing.
    @discardableResult
    public nonisolated(nonsending) final func modify<R>(
        expires time: Duration,
        _ body: (inout Value) throws -> R
    ) async throws -> R {
        var change = plainChange
        change.expiry = try Self.expiry(time, nil)
        return try await persistent.commit(change, check: check, body).result
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
