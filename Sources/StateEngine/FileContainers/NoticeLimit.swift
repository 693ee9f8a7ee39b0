import CLinux
import StateSystem

/// Limits the notices about a directory to what a log can take: whoever may make files there can
/// make any number of bad ones.
final class NoticeLimit: Sendable {
    /// The largest number of notices per minute; further ones are left out.
    static let count = 100

    private struct Window {
        var end: Int64 = .min
        var count = 0
    }

    private let location: String
    private let notice: @Sendable (String) -> Void
    private let window = StateLock(Window())

    init(_ location: String, _ notice: @escaping @Sendable (String) -> Void) {
        self.location = location
        self.notice = notice
    }

    func callAsFunction(_ sentence: String) {
        let now = clinux_monotonic_nanoseconds()
        let number = window.withLock { window in
            if now >= window.end { window = Window(end: now + 60_000_000_000) }
            window.count += 1
            return window.count
        }
        if number <= NoticeLimit.count { notice(sentence) }
        guard number == NoticeLimit.count else { return }
        notice(
            "too many problems in \(location): no more are logged for a minute; see statectl check"
        )
    }
}
