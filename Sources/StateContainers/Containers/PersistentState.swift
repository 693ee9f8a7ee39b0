public import StateEngine

/// A container whose value outlives the process: it is an entry of a keyspace.
///
/// `modify` returns when storage has the change, at the durability asked for; until then nobody sees it, and where the commit fails
/// nobody ever did. All containers of a key in one process share the value.
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
    /// How safe a change is before its writer goes on, where the call does not say.
    public final let durability: Durability

    /// A container of a key of `keyspace`; waits until its value is there.
    ///
    /// - Parameters:
    ///   - defaultValue: What it holds where nothing is stored.
    ///   - key: Where it is stored.
    ///   - keyspace: Which store.
    ///   - codec: How a value becomes bytes.
    ///   - durability: How safe a change is before its writer goes on.
    ///   - acceptsUnreadable: Whether it is no error where what is stored cannot be read: the container holds the default then,
    ///     ``status`` says why, and only ``replace(_:)`` writes.
    /// - Throws: ``StateError/Code/undecodable`` or ``StateError/Code/newerFormat`` where what is stored cannot be read, which
    ///   stays as it is; ``StateError/Code/typeMismatch`` where a container of another type is on the key; what the keyspace
    ///   failed with.
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

    /// The same without blocking a thread, for a keyspace that is not in this process.
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

    // MARK: What it is

    /// Where the value comes from.
    public final var origin: Origin { persistent.origin }

    /// Whether the value is what is stored.
    public final var status: StateStatus { persistent.status }

    /// What goes wrong without a call that could be told: a stored value that cannot be read, the keyspace away, a change that was
    /// taken back after its writer had gone on.
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

    package override var plainChange: Change { Change(durability: durability) }

    package override func note(_ error: any Error) {
        if let error = error as? StateError { persistent.note(error) }
    }
}
