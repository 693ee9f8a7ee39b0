/// A value with its metadata.
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

    /// An entry as another process reports it.
    package init(
        value: [UInt8],
        revision: Int64,
        created: Int64,
        version: Int64,
        time: Int64,
        owner: UInt32,
        cause: Cause
    ) {
        self.value = value
        self.revision = revision
        self.created = created
        self.version = version
        self.time = time
        self.owner = owner
        self.cause = cause
    }
}

/// A change or check of one key.
public enum Mutation: Hashable, Sendable {
    /// Sets the value; with a revision, only if the key was last modified at it (0: is absent).
    case set(Key, [UInt8], ifRevision: Int64? = nil, expires: Expiry = .ruled)
    /// Deletes the entry, under the same condition.
    case delete(Key, ifRevision: Int64? = nil)
    /// Changes nothing, but refuses the transaction if the key was not last modified at the
    /// revision.
    case check(Key, revision: Int64)
}
