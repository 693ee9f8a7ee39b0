public import StateEngine

/// Where the value of a container comes from.
public enum Origin: Hashable, Sendable {
    /// The stored value.
    case stored
    /// The default value: nothing is stored.
    case defaulted
    /// The stored value, migrated from an earlier version; the next write stores it in the current
    /// one.
    case migrated(from: Int)
}

/// Whether the value of a container is the stored one.
public enum StateStatus: Hashable, Sendable {
    /// It is the stored one.
    case current
    /// Storage has been unavailable since this time: the value is the last one seen.
    case away(since: ContinuousClock.Instant)
    /// The stored value cannot be read: the value is the last readable one, or the default.
    case undecodable(StateError)
}
