/// When the value that a write sets expires.
package enum Expiry: Hashable, Sendable {
    /// As the rule of the key says: after its `expire`, or never.
    case ruled
    /// As the value before; if the key is absent, as its rule says.
    case kept
    case never
    /// So many milliseconds after the write.
    case after(Int64)
    /// At a wall time in milliseconds since 1970.
    case at(Int64)

    /// The named wall time in milliseconds since 1970, if the write is at `now`; nil if none is
    /// named.
    package func time(from now: Int64) -> Int64? {
        switch self {
        case .ruled, .kept, .never: nil
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
