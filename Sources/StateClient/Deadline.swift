import StatePlatform

/// A point in time on the monotonic clock, for timeouts.
package struct Deadline: Hashable, Comparable, Sendable {
    private let nanoseconds: Int64

    /// The moment that is `duration` from now.
    package init(after duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let length = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let now = Self.now
        let sum = now.addingReportingOverflow(length.partialValue + attoseconds / 1_000_000_000)
        nanoseconds = length.overflow || sum.overflow ? .max : sum.partialValue
    }

    /// Milliseconds from now, rounded up, as poll(2) takes them; 0 if the deadline has passed.
    package var millisecondsLeft: Int32 {
        let left = max(0, nanoseconds - Self.now)
        return Int32(clamping: left / 1_000_000 + (left % 1_000_000 > 0 ? 1 : 0))
    }

    /// The earlier first.
    package static func < (left: Deadline, right: Deadline) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Whether the moment has passed.
    package var hasPassed: Bool { Self.now >= nanoseconds }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
