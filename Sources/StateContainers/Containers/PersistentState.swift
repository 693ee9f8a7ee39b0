public import StateEngine

/// A container whose value outlives the process: it is an entry of a keyspace.
///
/// `modify` returns once storage has the change, at the requested durability. Nobody sees the
/// change before that; if the commit fails, nobody ever does. All containers of a key in one
/// process share the value.
///
/// ```swift
/// let volume = try SQLiteState(0.5, key: "audio/volume", in: SQLiteDatabase(path: "app.db"))
/// try volume ~> 0.7
/// ```
open class PersistentState<Value: Codable & Sendable>: MonitoredState<Value, StateError>,
    @unchecked Sendable
{
    // Constant: the proof of `@unchecked Sendable`.
    package final let persistent: PersistentCore<Value>
    /// The durability of changes whose call does not name one.
    public final let durability: Durability
    /// When the values of changes end by themselves that do not say it; set by initializers only.
    package final var expiry = Expiry.ruled

    /// Makes a container of a key of `keyspace`; blocks until its value is loaded.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if nothing is stored.
    ///   - key: The key of the entry.
    ///   - keyspace: The store.
    ///   - codec: Converts a value to bytes and back.
    ///   - durability: The durability of changes whose call does not name one.
    ///   - acceptsUnreadable: Whether to accept stored bytes that cannot be read: the container
    ///     then holds the default, ``status`` says why, and only ``replace(_:)`` writes.
    /// - Throws: ``StateError/Code/undecodable`` or ``StateError/Code/newerFormat`` if the stored
    ///   bytes cannot be read; they stay as they are. ``StateError/Code/typeMismatch`` if the key
    ///   already has a container of another type. Any error of the keyspace.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: any Keyspace,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        persistent = try PersistentCore.following(key, in: keyspace, defaultValue, codec)
        self.durability = durability
        (keyspace as? any WaitableKeyspace)?.checkMayWait()
        persistent.loading.wait()
        try persistent.checkLoaded(acceptsUnreadable: acceptsUnreadable)
        super.init(core: persistent, check: nil)
    }

    /// Makes a container without blocking a thread, for a keyspace in another process.
    package init(
        attaching defaultValue: Value,
        key: Key,
        in keyspace: any Keyspace,
        codec: StateCodec<Value>,
        durability: Durability = .synced
    ) async throws(StateError) {
        persistent = try PersistentCore.following(key, in: keyspace, defaultValue, codec)
        self.durability = durability
        await persistent.loading.wait()
        try persistent.checkLoaded(acceptsUnreadable: false)
        super.init(core: persistent, check: nil)
    }

    package override class var libraryClass: AnyClass { PersistentState<Value>.self }

    // MARK: Status

    /// Where the value comes from.
    public final var origin: Origin { persistent.origin }

    /// Whether the value is the stored one.
    public final var status: StateStatus { persistent.status }

    /// Failures that no call can throw: a stored value that cannot be read, an unavailable
    /// keyspace, a change that was reverted after its call had returned.
    public final var failures: StateFailures {
        StateFailures(
            latest: StateValues { [failure = persistent.failure] slot in
                failure.join(FailureReceiver(slot), from: .current)
            }
        )
    }

    // MARK: Changing

    package override func commit<R>(
        _ change: Change,
        _ body: (inout Value) throws -> R
    ) throws -> (result: R, revision: Revision) {
        try persistent.commit(change, check: check, body)
    }

    package override var plainChange: Change { Change(durability: durability, expiry: expiry) }

    package override func note(_ error: any Error) {
        if let error = error as? StateError { persistent.note(error) }
    }
}
