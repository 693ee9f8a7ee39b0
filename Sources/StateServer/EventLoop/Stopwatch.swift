import CLinux
import Glibc

/// What a turn has used so far.
struct Stopwatch {
    private(set) var now = clinux_monotonic_nanoseconds()
    /// In nanoseconds, with what is still to come of it.
    private(set) var used: Int64 = 0
    /// What the thread had of a processor at the last long lap; 0 if that does not count.
    private var processor: Int64 = 0
    /// Longer laps may be those in which the thread had no processor.
    private static let longLap: Int64 = 50_000

    init(countsProcessor: Bool) {
        if countsProcessor { processor = ProcessorClock.nanoseconds }
    }

    /// - Returns: What was used since the last call, and `more`.
    mutating func lap(adding more: Int64) -> Int64 {
        let last = now
        now = clinux_monotonic_nanoseconds()
        var lap = now - last
        if lap > Stopwatch.longLap, processor > 0 {
            // The short laps between two long ones are in it, so it is an upper bound.
            let before = processor
            processor = ProcessorClock.nanoseconds
            lap = min(lap, processor - before)
        }
        lap += more
        used += lap
        return lap
    }
}

/// What this thread has had of a processor so far, in nanoseconds.
enum ProcessorClock {
    static var nanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
