import CLinux
import Glibc
import StateServer

/// Asks the service manager for more time while the values are being loaded, and warns where memory runs out meanwhile; from a
/// thread of its own.
///
/// A million keys load in a second, but a start from a slow disk must not be taken for one that hangs. A process that
/// the kernel ends for its memory has no time to say why.
final class LoadingNotice: Sendable {
    /// How often the memory is looked at.
    private static let intervalMilliseconds: Int32 = 50
    /// Every hundredth look, which is every 5 seconds, asks the service manager for 30 seconds more.
    private static let looksToNotice = 100
    private static let extensionMicroseconds = 30_000_000

    private let notifier: ServiceNotifier?
    private let log: Log
    private let ended: Int32

    /// Calls `body`, with notices until it returns.
    static func during<R, E: Error>(
        _ notifier: ServiceNotifier?,
        _ log: Log,
        _ body: () throws(E) -> R
    ) throws(E) -> R {
        guard let notice = LoadingNotice(notifier, log) else { return try body() }
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

    private init?(_ notifier: ServiceNotifier?, _ log: Log) {
        (self.notifier, self.log) = (notifier, log)
        ended = clinux_eventfd()
        guard ended >= 0 else { return nil }
    }

    deinit { close(ended) }

    private func repeatUntilEnded() {
        var waited = pollfd(fd: ended, events: Int16(POLLIN), revents: 0)
        var lookCount = 0
        var hasWarned = false
        repeat {
            if lookCount % LoadingNotice.looksToNotice == 0 {
                notifier?.send(
                    "EXTEND_TIMEOUT_USEC=\(LoadingNotice.extensionMicroseconds)",
                    "STATUS=Loading the values"
                )
            }
            if !hasWarned, let bound = MachineMemory.tightest, bound.isShort {
                hasWarned = true
                log.write(
                    .warning,
                    "the values that are loaded so far and the rest of the daemon take \(bound.description): "
                        + "if it is ended now, it needs more"
                )
            }
            lookCount += 1
        } while poll(&waited, 1, LoadingNotice.intervalMilliseconds) == 0
    }
}
