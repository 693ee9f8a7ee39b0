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
open class PersistentState<Value: Codable & Sendable>: MonitoredContainer<Value, StateError>,
    @unchecked Sendable
{
    // Constant, or under the lock: the proof of `@unchecked Sendable`.
    /// The storage, if each scope has its own.
    private final let storage: StateStorage?
    /// Held, so that it stays open; nil if the storage holds it.
    private final let keyspace: (any Keyspace)?
    private final let codec: StateCodec<Value>
    private final let defaultValue: Value
    /// The core and queue outside of scopes, if the container is in a storage, which is opened at the
    /// first use.
    private final let outer = LateRegistration<Value>()
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
    ///     then holds the default, ``status`` says why, and only ``overwrite(_:)`` writes.
    /// - Throws: ``StateError/Code/undecodable`` or ``StateError/Code/newerFormat`` if the stored
    ///   bytes cannot be read; they stay as they are. ``StateError/Code/typeMismatch`` if the key
    ///   already has a container of another type. ``StateError/Code/invalidRequest`` if the default
    ///   of an Optional is not nil, or if the type has a rule that nobody checks. Any error of the
    ///   keyspace.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: any Keyspace,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        let core = try PersistentCore.following(key, in: keyspace, defaultValue, codec)
        (keyspace as? any WaitableKeyspace)?.checkMayWait()
        core.loading.wait()
        try core.checkLoaded(acceptsUnreadable: acceptsUnreadable)
        self.durability = durability
        self.codec = codec
        self.defaultValue = defaultValue
        storage = nil
        self.keyspace = keyspace
        super.init(core: core, check: nil)
    }

    /// Makes a container of a key of `storage`, for a static property.
    ///
    /// Its first use opens the storage, and blocks until its value is loaded; for a subclass that is
    /// not the library's, whose `didModify` is to be called, that is now.
    ///
    /// It throws nothing: if the storage cannot be opened, or the stored bytes cannot be read, the
    /// container has its default value, ``status`` and ``failures`` say why, and each change throws
    /// that error.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if nothing is stored.
    ///   - key: The key of the entry.
    ///   - storage: The store; in a ``StateScope`` it is one in memory.
    ///   - codec: Converts a value to bytes and back.
    ///   - durability: The durability of changes whose call does not name one.
    public init(
        _ defaultValue: Value,
        key: Key,
        in storage: StateStorage = .current,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced
    ) {
        self.durability = durability
        self.codec = codec
        self.defaultValue = defaultValue
        self.storage = storage
        keyspace = nil
        super.init(
            core: StateCore(
                defaultValue,
                key: key,
                revision: .memoryStart,
                isDirect: false,
                isTracked: true
            ),
            check: nil,
            isLate: true
        )
        if !isOfLibrary { _ = registration }
    }

    /// Makes a container of a key of `keyspace` in a task, which waits for its value without blocking
    /// the thread; the parameters and errors are those of the other form.
    ///
    /// The compiler takes this form in a task. A subclass inherits only the other one; it declares this
    /// one if it is to be made in tasks.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: any Keyspace,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) async throws(StateError) {
        let core = try PersistentCore.following(key, in: keyspace, defaultValue, codec)
        await core.loading.wait()
        try core.checkLoaded(acceptsUnreadable: acceptsUnreadable)
        self.durability = durability
        self.codec = codec
        self.defaultValue = defaultValue
        storage = nil
        self.keyspace = keyspace
        super.init(core: core, check: nil)
    }

    package override class var libraryClass: AnyClass { PersistentState<Value>.self }

    // MARK: The core

    package final var persistent: PersistentCore<Value> {
        // Made by the initializers, `makeCore` and `outerRegistration`.
        unsafeDowncast(core, to: PersistentCore<Value>.self)
    }

    package override var isDivided: Bool { storage != nil }

    package override func makeCore(in scope: StateScope) -> StateCore<Value> { loadedCore(scope) }

    package override var outerRegistration: Registration<Value> {
        guard isLate else { return super.outerRegistration }
        return outer.registration(of: self) { loadedCore(nil) }
    }

    private final func loadedCore(_ scope: StateScope?) -> StateCore<Value> {
        guard let storage else { preconditionFailure("state '\(key)' is not divided") }
        return PersistentCore.loaded(key, in: storage, scope, defaultValue, codec)
    }

    // MARK: Status

    /// Where the value comes from.
    public final var origin: Origin { persistent.origin }

    /// Whether the value is the stored one.
    public final var status: StateStatus { persistent.status }

    /// Failures that no call can throw: a stored value that cannot be read, an unavailable
    /// keyspace, a change that was reverted after its call had returned.
    public final var failures: StateFailures {
        StateFailures(
            // They end with the core, which follows the keyspace.
            latest: StateValues { [persistent] slot in
                let joined = persistent.failure.join(FailureReceiver(slot), from: .current)
                return Membership(joined, retaining: persistent)
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

    package nonisolated(nonsending) override func commitInTask<R>(
        _ change: Change,
        _ body: (inout Value) throws -> R
    ) async throws -> (result: R, revision: Revision) {
        try await persistent.commit(change, check: check, body)
    }

    package override var plainChange: Change { Change(durability: durability, expiry: expiry) }

    package override func note(_ error: any Error) {
        if let error = error as? StateError { persistent.note(error) }
    }
}
