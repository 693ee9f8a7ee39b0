/// How much history a store keeps besides its live entries: whichever of the three limits is
/// reached first applies.
///
/// Live entries are never removed, however old they are. 0 in any of the limits keeps no history.
public struct HistoryLimits: Hashable, Sendable {
    /// The number of changes, the newest ones; at least 0.
    public var changeCount = 1_000_000
    /// The largest age of a change; at least 0.
    public var age = Duration.seconds(7 * 86_400)
    /// Bytes of the changes: keys, values and their metadata; at least 0.
    public var byteCount: Int64 = 1 << 30

    /// The defaults: a million changes, 7 days, 1 GiB.
    public init() {}
}
