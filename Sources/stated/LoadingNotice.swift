import CLinux
import Glibc

/// Asks the service manager for more time, from a thread of its own, while the values are being loaded.
///
/// A million keys load in a second, but a start from a slow disk must not be taken for one that hangs.
final class LoadingNotice: Sendable {
    /// How often the manager is told, and for how long each time: a notice may come three seconds late.
    private static let intervalMilliseconds: Int32 = 5_000
    private static let extensionMicroseconds = 30_000_000

    private let notifier: ServiceNotifier
    private let ended: Int32

    /// Calls `body`, with notices until it returns.
    static func during<R, E: Error>(
        _ notifier: ServiceNotifier?,
        _ body: () throws(E) -> R
    ) throws(E) -> R {
        guard let notifier, let notice = LoadingNotice(notifier) else { return try body() }
        var thread = pthread_t()
        let context = Unmanaged.passRetained(notice)
        let status = pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                Unmanaged<LoadingNotice>.fromOpaque(context).takeRetainedValue().repeatUntilEnded()
                return nil
            },
            context.toOpaque()
        )
        guard status == 0 else {
            context.release()
            return try body()
        }
        defer {
            var count: UInt64 = 1
            write(notice.ended, &count, MemoryLayout<UInt64>.size)
            pthread_join(thread, nil)
        }
        return try body()
    }

    private init?(_ notifier: ServiceNotifier) {
        self.notifier = notifier
        ended = clinux_eventfd()
        guard ended >= 0 else { return nil }
    }

    deinit { close(ended) }

    private func repeatUntilEnded() {
        var waited = pollfd(fd: ended, events: Int16(POLLIN), revents: 0)
        repeat {
            notifier.send(
                "EXTEND_TIMEOUT_USEC=\(LoadingNotice.extensionMicroseconds)",
                "STATUS=Loading the values"
            )
        } while poll(&waited, 1, LoadingNotice.intervalMilliseconds) == 0
    }
}
