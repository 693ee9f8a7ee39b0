public import StateContainers

/// A container whose value is encrypted at rest: a token, a password, an account.
///
/// ```swift
/// let key = try SecretKey.credential("player")
/// let token = try SecretState(Secret?.none, key: "api/token", in: keyspace, sealedWith: key)
/// try token ~> Secret(text)
/// ```
///
/// What is stored, in its history too, can only be read with the key. The value is no part of a
/// description or an error. In the daemon, add a rule `read: ["owner"]`, so that others do not get
/// even the encrypted bytes; files of a `StateDirectory` have mode 0600.
///
/// A subclass may override `didModify(_:)`.
open class SecretState<Value: Codable & Sendable>: PersistentState<Value>,
    CustomStringConvertible, @unchecked Sendable
{
    // No stored properties: the proof of `@unchecked Sendable`.

    /// Makes a container of a key of `keyspace`; blocks until its value is loaded.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if nothing is stored.
    ///   - key: The key of the entry.
    ///   - keyspace: The store.
    ///   - secretKey: Encrypts the value.
    ///   - codec: Converts a value to the bytes that are encrypted.
    ///   - acceptsUnreadable: As in ``PersistentState``.
    /// - Throws: ``StateError/Code/undecodable`` if what is stored was changed or encrypted with
    ///   another key; it stays. The same if the key has a container in this process that has another
    ///   secret key, or none. Else as ``PersistentState``.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: any Keyspace,
        sealedWith secretKey: SecretKey,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        try super.init(
            defaultValue,
            key: key,
            in: keyspace,
            codec: codec.sealed(with: secretKey, for: key),
            acceptsUnreadable: acceptsUnreadable
        )
    }

    /// The same in a task, which waits without blocking the thread.
    public init(
        _ defaultValue: Value,
        key: Key,
        in keyspace: any Keyspace,
        sealedWith secretKey: SecretKey,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false
    ) async throws(StateError) {
        try await super.init(
            defaultValue,
            key: key,
            in: keyspace,
            codec: codec.sealed(with: secretKey, for: key),
            acceptsUnreadable: acceptsUnreadable
        )
    }

    /// The key, not the value.
    public final var description: String { "secret '\(key)'" }
}

extension SecretState: LibraryContainer {
    package static var ownClass: AnyClass { SecretState<Value>.self }
}
