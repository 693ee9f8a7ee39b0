import Glibc

/// Wall times for people.
enum UniversalTime {
    /// A wall time in milliseconds since 1970, as `2026-11-24T16:00:00Z`.
    static func text(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        var text = [CChar](repeating: 0, count: 32)
        gmtime_r(&seconds, &parts)
        let count = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
