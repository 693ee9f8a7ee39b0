import CLinux

/// Schedules retries after a failure: after 0.1 s, 0.2 s and so on up to 10 s.
struct Retry {
    private(set) var at: Int64?
    private var pause: Int64 = 0

    var pauseNanoseconds: Int64 { pause }

    mutating func begin() {
        if at == nil { next() }
    }

    mutating func next() {
        pause = min(max(pause * 2, 100_000_000), 10_000_000_000)
        at = clinux_monotonic_nanoseconds() + pause
    }

    /// Retries at once; the pauses after that are no shorter.
    mutating func hasten() { at = min(at ?? .max, clinux_monotonic_nanoseconds()) }

    /// Nothing needs a retry; the pause after the next failure is longer.
    mutating func rest() { at = nil }

    mutating func end() { (at, pause) = (nil, 0) }

    var isDue: Bool { at.map { $0 <= clinux_monotonic_nanoseconds() } ?? false }
}
