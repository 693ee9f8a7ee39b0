import StatePlatform

/// The two clocks of a server.
package enum SystemClock {
    /// Milliseconds since 1970.
    package static func wallMilliseconds() -> Int64 { milliseconds(CLOCK_REALTIME) }

    /// Milliseconds since an arbitrary start, the same for the whole process.
    package static func monotonicMilliseconds() -> Int64 { milliseconds(CLOCK_MONOTONIC) }

    #if !canImport(Darwin)
    /// The same, but it also goes on while the machine sleeps.
    package static func bootMilliseconds() -> Int64 { milliseconds(CLOCK_BOOTTIME) }
    #endif

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
