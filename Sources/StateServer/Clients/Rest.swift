/// How long a user is not served after something long, while others are.
///
/// Beside a loop that never sleeps the kernel makes others wait: GETs of 10 clients on two processors had a p99 of 6 ms beside
/// slices of 0.25 ms in a row, and of 0.3 without them. So a user rests three times as long as it was served. A user who repeats
/// commands that cannot be interrupted and take much longer than a slice rests so long that they, what is sent before them and what
/// storage does for them take less than a hundredth of the time. (MULTI of 2,000 SETs, EXEC 0.45 ms: 300 times as long left GETs of
/// others with twice their p99, 900 times with 1.4 times.)
package struct Rest {
    /// On the monotonic clock, in nanoseconds.
    package private(set) var end: Int64 = 0
    /// The same for many short events in a row.
    package private(set) var debtEnd: Int64 = 0
    /// What was longer than a slice, halved again and again.
    private var longSum: Int64 = 0

    /// What was used lately: a quarter of the time that passes pays for it.
    private var debt: Int64 = 0
    private var notedAt: Int64 = 0

    /// An event of fewer commands is worth no rest, unless many come in a row.
    private static let short: Int64 = 25_000
    /// As much of what is short costs nothing: GETs of 10 clients that come at once.
    private static let freeDebt: Int64 = 120_000
    /// No slice is longer, with its end and what it has to write.
    package static let long: Int64 = 150_000
    /// A rest is so many times as long as what exceeds that.
    private static let factor: Int64 = 900
    /// As much of what is longer costs nothing: somebody sends a large command now and then.
    private static let free: Int64 = 1_000_000

    package init() {}

    /// Notes that the user was served for so many nanoseconds.
    ///
    /// - Parameters:
    ///   - used: How long.
    ///   - now: On the monotonic clock.
    ///   - longest: The longest rest after what is longer than a slice; 0 for none.
    package mutating func note(_ used: Int64, at now: Int64, longest: Int64) {
        debt = max(0, debt - (now - notedAt) / 4) + used
        notedAt = now
        if debt > Rest.freeDebt { debtEnd = max(debtEnd, now + 3 * used) }
        guard used > Rest.short else { return }
        var pause = 3 * used
        if used > Rest.long {
            longSum += used
            if longSum > Rest.free {
                pause = max(pause, min(pause + Rest.factor * (used - Rest.long), longest))
            }
        }
        end = max(end, now + pause)
    }

    package mutating func age() { longSum /= 2 }
}
