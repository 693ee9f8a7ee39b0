import Glibc
import StateClient

/// Pauses between attempts; each is twice as long as the one before.
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

/// Waiting for time to pass.
enum Pause {
    /// Waits for so long.
    ///
    /// Returns false if the deadline passes first.
    ///
    /// - Throws: ``Failure/brokenPipe`` if `needsReader` and nobody reads standard output any more.
    static func rest(
        _ pause: Duration,
        until deadline: Deadline?,
        needsReader: Bool
    ) throws(Failure) -> Bool {
        let end = Deadline(after: pause)
        let first = deadline.map { min($0, end) } ?? end
        var output = pollfd(fd: needsReader ? STDOUT_FILENO : -1, events: 0, revents: 0)
        while !first.hasPassed {
            guard poll(&output, 1, first.millisecondsLeft) > 0 else { continue }
            if output.revents & Int16(POLLERR | POLLHUP) != 0 { throw .brokenPipe }
            // The descriptor is not open: there is no reader to lose.
            output.fd = -1
        }
        return !(deadline?.hasPassed ?? false)
    }
}

extension Duration {
    /// For messages: `0.1 s`.
    var shown: String {
        let milliseconds = Int64(self / .milliseconds(1))
        let tenths = (milliseconds + 50) / 100
        return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
}
