import Glibc
import StateClient

/// Pauses between attempts, each twice as long as the one before.
struct BackOff {
    private var pause: Duration
    private let last: Duration

    init(first: Duration, last: Duration) {
        pause = first
        self.last = last
    }

    /// How long to wait now.
    mutating func next() -> Duration {
        defer { pause = min(pause * 2, last) }
        return pause
    }
}

/// Waiting for nothing but the time.
enum Pause {
    /// Waits for so long; false where the deadline passes first.
    ///
    /// - Throws: ``Failure/brokenPipe`` where standard output has nobody who reads it any more, and `needsReader`.
    static func rest(
        _ pause: Duration,
        until deadline: Deadline?,
        needsReader: Bool
    ) throws(Failure) -> Bool {
        let end = Deadline(after: pause)
        let wanted = deadline.map { min($0, end) } ?? end
        var output = pollfd(fd: needsReader ? STDOUT_FILENO : -1, events: 0, revents: 0)
        while !wanted.hasPassed {
            guard poll(&output, 1, wanted.millisecondsLeft) > 0 else { continue }
            if output.revents & Int16(POLLERR | POLLHUP) != 0 { throw .brokenPipe }
            // A descriptor that is none: there is nobody to lose.
            output.fd = -1
        }
        return !(deadline?.hasPassed ?? false)
    }
}

extension Duration {
    /// As a message says it: `0.1 s`.
    var shown: String {
        let milliseconds = Int64(self / .milliseconds(1))
        let tenths = (milliseconds + 50) / 100
        return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
}
