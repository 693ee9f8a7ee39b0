import Glibc

/// Wall time in readable form.
enum Timestamp {
    /// `2026-01-31T12:34:56.789Z`, in UTC.
    static func universal(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        return "\(date(parts))T\(time(parts)).\(padded(Int32(milliseconds % 1_000), 3))Z"
    }

    /// `2026-01-31 13:34:56`, in local time.
    static func local(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return "\(date(parts)) \(time(parts))"
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
