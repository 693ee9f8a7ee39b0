import StateEngine
import StateSQLite
import StateServer
import Synchronization

/// Asks the service manager for more time while the values load, says how many are loaded, and
/// warns if memory runs short.
///
/// It has its own thread.
///
/// A million keys load in a second, but the service manager must not take a start from a slow disk
/// for one that hangs. A process that the kernel ends for its memory cannot report why.
final class LoadingNotice: Sendable {
    /// How often the memory is checked.
    private static let intervalNanoseconds: Int64 = 50_000_000
    /// Every twentieth check (every second) asks the service manager for 30 more seconds.
    private static let looksToNotice = 20
    private static let extensionMicroseconds = 30_000_000

    private let loading: LoadProgress?
    private let notifier: ServiceNotifier?
    private let log: Log
    private let hasEnded = Atomic(false)
    private let wakeup = BlockingSemaphore()

    private init(_ loading: LoadProgress?, _ notifier: ServiceNotifier?, _ log: Log) {
        (self.loading, self.notifier, self.log) = (loading, notifier, log)
    }

    /// Calls `body`, with notices until it returns.
    static func during<R, E: Error>(
        _ loading: LoadProgress?,
        _ notifier: ServiceNotifier?,
        _ log: Log,
        _ body: () throws(E) -> R
    ) throws(E) -> R {
        let notice = LoadingNotice(loading, notifier, log)
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
        let line = Progress("loaded")
        defer { line.clear() }
        repeat {
            // The first notice comes before any number.
            let text = lookCount > 0 ? loading?.text : nil
            if lookCount % LoadingNotice.looksToNotice == 0 {
                notifier?.send(
                    "EXTEND_TIMEOUT_USEC=\(LoadingNotice.extensionMicroseconds)",
                    "STATUS=Loading the values" + (text.map { ": \($0)" } ?? "")
                )
            }
            if let text { line.show(text) }
            if !hasWarned, let bound = MachineMemory.tightest, bound.isShort {
                hasWarned = true
                log.write(
                    .warning,
                    .loadingShort,
                    "loading the values takes \(bound.description): if the daemon is killed now, "
                        + "raise this limit"
                )
            }
            lookCount += 1
            wakeup.wait(nanoseconds: LoadingNotice.intervalNanoseconds)
        } while !hasEnded.load(ordering: .acquiring)
    }
}
