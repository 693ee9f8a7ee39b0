public import StateEngine

extension HistoryLimits {
    /// Keeps the live values only: for values that change often and whose past nobody reads.
    ///
    /// Past changes are removed in batches of a few thousand, so the file stays small.
    public static var none: HistoryLimits { .keep(changes: 0) }

    /// Keeps past changes until the first of three limits is reached.
    ///
    /// - Parameters:
    ///   - changes: The number of changes; by default a million.
    ///   - age: The largest age of a change; by default 7 days.
    ///   - byteCount: Bytes of keys, values and their metadata; by default 1 GiB.
    /// - Returns: The limits.
    public static func keep(
        changes: Int? = nil,
        age: Duration? = nil,
        byteCount: Int64? = nil
    ) -> HistoryLimits {
        var limits = HistoryLimits()
        if let changes { limits.changeCount = changes }
        if let age { limits.age = age }
        if let byteCount { limits.byteCount = byteCount }
        return limits
    }
}
