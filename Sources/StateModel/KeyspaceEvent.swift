/// What a watch of a keyspace is told.
public enum KeyspaceEvent: Sendable {
    /// One commit, never split: its changes to the keys that are followed.
    case commit(Revision, [KeyspaceChange], cause: Cause)
    /// The keys of `patterns` are exactly these at this revision, in no order: the beginning, and the new beginning where commits
    /// were missed or the store is another.
    case state(Revision, patterns: [Pattern], [KeyspaceChange])
    /// Nothing is heard of the keyspace: what it told may be old, until it tells the state anew, or that it has resumed.
    case away(StateError)
    /// After ``away(_:)``: what was told before still holds, every commit since was told, and what follows is current.
    case resumed(Revision)
    /// These patterns are not followed, and why.
    case refused(patterns: [Pattern], StateError)
}

/// What one key is after a commit.
public struct KeyspaceChange: Hashable, Sendable {
    /// The key.
    public var key: Key
    /// Its value; nil where it was deleted.
    public var value: [UInt8]?
    /// The commit that last modified the entry; 0 where it is absent.
    public var revision: Int64
    /// Who made that commit; nil where it is not known.
    public var cause: Cause?

    /// Names what a key is.
    public init(key: Key, value: [UInt8]?, revision: Int64, cause: Cause? = nil) {
        self.key = key
        self.value = value
        self.revision = revision
        self.cause = cause
    }
}
