import StateEngine

/// The threads that tell of changes when no writer's does.
package final class Notifier: Sendable {
    package static let shared = Notifier()

    private let jobs = StateLock<[@Sendable () -> Void]>([])
    private let semaphore = Semaphore()
    private let thread = WorkerThread(name: "notifier")

    private init() {
        thread.start { [self] in
            while true {
                semaphore.wait()
                jobs.withLock { $0.removeFirst() }()
            }
        }
    }

    package func run(_ job: @escaping @Sendable () -> Void) {
        jobs.withLock { $0.append(job) }
        semaphore.signal()
    }
}
