/// How much of the past a store keeps beside its live entries: whichever of the three is reached first ends it.
///
/// What is live never goes, however old it is. 0 in any of them keeps nothing beyond it.
public struct HistoryLimits: Hashable, Sendable {
    /// Changes, the newest ones; at least 0.
    public var changeCount = 1_000_000
    /// The age of a change; at least 0.
    public var age = Duration.seconds(7 * 86_400)
    /// Bytes of the changes: keys, values and what is stored beside them; at least 0.
    public var byteCount: Int64 = 1 << 30

    /// The defaults: a million changes, 7 days, 1 GiB.
    public init() {}
}
