import Glibc

/// Wall time in readable form.
enum Timestamp {
    /// Milliseconds since 1970.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// `2026-01-31T13:34:56.789+01:00`, in local time with its distance from UTC.
    static func text(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        let fraction = padded(Int32(milliseconds % 1_000), 3)
        return "\(date(parts))T\(time(parts)).\(fraction)\(zone(parts.tm_gmtoff / 60))"
    }

    private static func zone(_ minutes: Int) -> String {
        let (hours, rest) = abs(minutes).quotientAndRemainder(dividingBy: 60)
        return (minutes < 0 ? "-" : "+") + padded(Int32(hours), 2) + ":" + padded(Int32(rest), 2)
    }

    private static func date(_ parts: tm) -> String {
        "\(padded(parts.tm_year + 1_900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
    }

    private static func time(_ parts: tm) -> String {
        "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
    }

    private static func padded(_ number: Int32, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
