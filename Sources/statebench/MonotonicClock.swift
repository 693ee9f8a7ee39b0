import Glibc

/// Clocks for measuring.
enum MonotonicClock {
    /// Nanoseconds since some point of this boot.
    static var now: UInt64 { read(CLOCK_MONOTONIC) }

    /// Nanoseconds since 1970, to compare with the times of another program.
    static var wall: UInt64 { read(CLOCK_REALTIME) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Sleeps until ``now`` is `time`; returns at once if it has passed.
    static func sleep(until time: UInt64) {
        var end = timespec()
        end.tv_sec = Int(time / 1_000_000_000)
        end.tv_nsec = Int(time % 1_000_000_000)
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nil) == EINTR {}
    }

    static func pause(microseconds: Int) {
        usleep(UInt32(microseconds))
    }
}
