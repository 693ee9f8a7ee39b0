/// When the value that a write sets ends by itself.
public enum Expiry: Hashable, Sendable {
    /// As the rule of the key says: after its `expire`, with its `lifetime`, or never.
    case ruled
    /// As the value before; if the key is absent, as its rule says.
    case kept
    case never
    /// So many milliseconds after the write.
    case after(Int64)
    /// At a wall time in milliseconds since 1970.
    case at(Int64)
    /// When somebody is gone.
    case with(Lifetime)

    /// So long after the write, rounded up to a millisecond.
    public static func expiring(after time: Duration) -> Expiry {
        let (seconds, attoseconds) = time.components
        let rest = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
        return .after(overflows ? .max : product + rest)
    }

    /// The named wall time in milliseconds since 1970, if the write is at `now`; nil if none is
    /// named.
    package func time(from now: Int64) -> Int64? {
        switch self {
        case .ruled, .kept, .never, .with: nil
        case .at(let time): time
        case .after(let milliseconds): Expiry.time(milliseconds, after: now)
        }
    }

    /// A wall time; the latest possible if there is none so late.
    package static func time(_ milliseconds: Int64, after now: Int64) -> Int64 {
        let (time, overflows) = now.addingReportingOverflow(milliseconds)
        return overflows ? .max : time
    }
}

/// Whose end deletes a value.
public enum Lifetime: String, Hashable, Sendable, CaseIterable {
    /// The connection that set it.
    case connection
    /// The process that opened that connection.
    case process
}
