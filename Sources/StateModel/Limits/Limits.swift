/// All quantities that a user controls, with their limits.
public struct Limits: Hashable, Sendable {
    /// The largest value, in bytes.
    public var valueByteCount = 8 << 20
    /// Uncommitted changes, in bytes of keys and values.
    public var queueByteCount = 64 << 20
    /// The largest transaction, in bytes of keys and values.
    public var transactionByteCount = 64 << 20
    /// The largest transaction, in changes.
    public var transactionChangeCount = 1_000_000
    /// Names of any kind in the directory of files of one rule, including its subdirectories.
    public var fileCount = 100_000
    /// Names in the path of the file of a key that is set, its own included.
    package var fileDepth = 32
    /// Steps that the files of one transaction may take, if its writer has no admin rights; see
    /// `FileWork` in `StateEngine`.
    package var fileStepCount = 10_000

    /// The defaults.
    public init() {}
}
