import Glibc

/// Time for measuring.
enum MonotonicClock {
    /// Nanoseconds since some point of this boot.
    static var now: UInt64 { read(CLOCK_MONOTONIC) }

    /// Nanoseconds since 1970, to compare with what another program read.
    static var wall: UInt64 { read(CLOCK_REALTIME) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    static func pause(microseconds: Int) {
        usleep(UInt32(microseconds))
    }
}
