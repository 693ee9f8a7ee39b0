import StateEngine
import StateServer
import Synchronization

/// Asks the service manager for more time while the values are being loaded, and warns where memory runs out meanwhile; from a
/// thread of its own.
///
/// A million keys load in a second, but a start from a slow disk must not be taken for one that hangs. A process that
/// the kernel ends for its memory has no time to say why.
final class LoadingNotice: Sendable {
    /// How often the memory is looked at.
    private static let intervalNanoseconds: Int64 = 50_000_000
    /// Every hundredth look, which is every 5 seconds, asks the service manager for 30 seconds more.
    private static let looksToNotice = 100
    private static let extensionMicroseconds = 30_000_000

    private let notifier: ServiceNotifier?
    private let log: Log
    private let hasEnded = Atomic(false)
    private let wakeup = BlockingSemaphore()

    private init(_ notifier: ServiceNotifier?, _ log: Log) {
        (self.notifier, self.log) = (notifier, log)
    }

    /// Calls `body`, with notices until it returns.
    static func during<R, E: Error>(
        _ notifier: ServiceNotifier?,
        _ log: Log,
        _ body: () throws(E) -> R
    ) throws(E) -> R {
        let notice = LoadingNotice(notifier, log)
        let thread = WorkerThread(name: "loading")
        thread.start { notice.repeatUntilEnded() }
        defer {
            notice.hasEnded.store(true, ordering: .releasing)
            notice.wakeup.signal()
            thread.join()
        }
        return try body()
    }

    private func repeatUntilEnded() {
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
            wakeup.wait(nanoseconds: LoadingNotice.intervalNanoseconds)
        } while !hasEnded.load(ordering: .acquiring)
    }
}
