import CLinux

/// Whether it pays to stay awake until an event comes, because such events came soon lately.
///
/// Sleeping and being woken takes 20 to 40 µs on a virtual machine, which a writer that waits for
/// each of its writes meets twice. Staying awake for an event that does not come soon only takes
/// processor time from others.
package struct Patience {
    /// How long to stay awake, in nanoseconds.
    package let limit: Int64
    /// About how long the last eight events took, in nanoseconds.
    private var average: Int64 = 0
    /// With one processor, staying awake would keep the event from happening.
    private static let isAlone = clinux_processor_count() == 1

    /// Makes one that stays awake for `limit` nanoseconds.
    package init(nanoseconds limit: Int64) { self.limit = limit }

    /// Whether to stay awake for the next event.
    package var pays: Bool { average <= limit && !Patience.isAlone }

    /// Records how long an event took, whether awake or asleep.
    ///
    /// One long pause is not enough to go to sleep.
    package mutating func note(nanoseconds: Int64) {
        average += (min(nanoseconds, limit * 6) - average) / 8
    }
}
