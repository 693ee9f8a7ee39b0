/// Every quantity that a user controls, with its bound.
public struct Limits: Hashable, Sendable {
    /// The largest value, in bytes.
    public var valueByteCount = 8 << 20
    /// Changes that are not committed yet, in bytes of keys and values.
    public var queueByteCount = 64 << 20
    /// The largest transaction, in bytes of keys and values.
    public var transactionByteCount = 64 << 20
    /// The largest transaction, in changes.
    public var transactionChangeCount = 1_000_000
    /// Names in the directory of files of one rule, those below it included, of whatever kind.
    public var fileCount = 100_000

    /// The defaults.
    public init() {}
}
