import StateEngine

/// A thread of its own for tasks that must go on while tests block the threads that all tasks share.
///
/// `Task(executorPreference: ThreadExecutor()) { … }`; the thread ends when the last reference goes.
package final class ThreadExecutor: TaskExecutor {
    private struct Waiting {
        var jobs: [(UnownedJob, UnownedTaskExecutor)] = []
        var isEnded = false
    }

    /// What the thread holds, so that it does not hold the executor.
    private final class Queue: Sendable {
        let waiting = StateLock(Waiting())
        let semaphore = BlockingSemaphore()
    }

    private let queue = Queue()

    package init() {
        WorkerThread(name: "tasks").start { [queue] in
            while true {
                queue.semaphore.wait()
                let (job, isEnded) = queue.waiting.withLock { waiting in
                    (waiting.jobs.isEmpty ? nil : waiting.jobs.removeFirst(), waiting.isEnded)
                }
                if let (job, executor) = job {
                    job.runSynchronously(on: executor)
                } else if isEnded {
                    return
                }
            }
        }
    }

    deinit {
        queue.waiting.withLock { $0.isEnded = true }
        queue.semaphore.signal()
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedTaskExecutor()
        queue.waiting.withLock { $0.jobs.append((job, executor)) }
        queue.semaphore.signal()
    }
}
