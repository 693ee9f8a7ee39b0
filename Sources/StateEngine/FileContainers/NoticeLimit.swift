import CLinux
import StateSystem

/// Hands on what is found in a directory, and no more of it than a log can take: whoever may make files there may make any number of bad
/// ones.
final class NoticeLimit: Sendable {
    /// More sentences than these in a minute are left out.
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
        notice("more about \(location) is not logged for a minute; see statectl check")
    }
}
