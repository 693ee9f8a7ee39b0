/// An event that a watch of a keyspace receives.
public enum KeyspaceEvent: Sendable {
    /// One commit, never split: its changes to the watched keys.
    case commit(Revision, [KeyspaceChange], cause: Cause)
    /// The keys of `patterns` are exactly these at this revision, in no order: at the start, and
    /// again if commits were missed or the store is a different one.
    case state(Revision, patterns: [Pattern], [KeyspaceChange])
    /// The connection to the keyspace is lost: earlier events may be outdated, until a new state or
    /// ``resumed(_:)``.
    case away(StateError)
    /// After ``away(_:)``: earlier events are still valid, every commit since was delivered, and
    /// what follows is current.
    case resumed(Revision)
    /// These patterns are not watched, and why.
    case refused(patterns: [Pattern], StateError)
}

/// The state of one key after a commit.
public struct KeyspaceChange: Hashable, Sendable {
    /// The key.
    public var key: Key
    /// Its value; nil if it was deleted.
    public var value: [UInt8]?
    /// The commit that last modified the entry; 0 if it is absent.
    public var revision: Int64
    /// Who made that commit; nil if unknown.
    public var cause: Cause?

    /// Makes a change.
    public init(key: Key, value: [UInt8]?, revision: Int64, cause: Cause? = nil) {
        self.key = key
        self.value = value
        self.revision = revision
        self.cause = cause
    }
}
