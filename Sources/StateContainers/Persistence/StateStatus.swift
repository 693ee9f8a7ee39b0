public import StateEngine

/// Where the value of a container comes from.
public enum Origin: Hashable, Sendable {
    /// It was stored.
    case stored
    /// Nothing is stored: it is the default value.
    case defaulted
    /// It was stored in the form of an earlier version; the next write stores it in the present one.
    case migrated(from: Int)
}

/// Whether the value of a container is the stored one.
public enum StateStatus: Hashable, Sendable {
    /// It is.
    case current
    /// Nobody answers since then: it is the last one that was seen.
    case away(since: ContinuousClock.Instant)
    /// What is stored cannot be read: it is the last one that could, or the default.
    case undecodable(StateError)
}
