import CLinux
import StateEngine

/// One turn of work for the notifier: for one listener, or for one container's `didModify`.
package protocol NotifierJob: AnyObject, Sendable {
    /// The container and the receiver, for traces.
    var subject: (key: Key, who: String) { get }
    /// Does the work; enqueues itself again if there is more.
    func run()
}

/// Work that cannot be done where it is due, because locks are held there.
package final class LateWork: NotifierJob {
    package let subject: (key: Key, who: String)
    private let body: @Sendable () -> Void

    package init(_ key: Key, _ what: String, _ body: @escaping @Sendable () -> Void) {
        subject = (key, what)
        self.body = body
    }

    package func run() { body() }
}

/// The threads that deliver changes if no writer's thread does.
///
/// A thread starts when a job finds none idle, 8 at most, and ends after it was idle for a while.
/// Up to 7 jobs that block forever delay no other. One listener's jobs are serial, because it has
/// at most one in here.
package final class Notifier: Sendable {
    package static let shared = Notifier()

    private static let threadLimit = 8
    private static let idleNanoseconds: Int64 = 10_000_000_000
    /// Work that takes longer is reported to the trace hook.
    private static let slowNanoseconds: Int64 = 1_000_000_000

    private struct Pool {
        var jobs = Ring<any NotifierJob>()
        var workers: [Worker] = []
        /// The workers that wait for a job.
        ///
        /// For each waiting job, a worker was taken from here and is on its way, or all are busy.
        var idle: [Worker] = []
        /// Whether a thread looks for slow work.
        var isWatched = false
    }

    /// One thread.
    private final class Worker: @unchecked Sendable {
        let semaphore = BlockingSemaphore()
        // Under the lock of the pool: the proof of `@unchecked Sendable`.
        var work: Work?
    }

    private struct Work {
        let job: any NotifierJob
        let start: Int64
        var isNamed = false
    }

    private let pool = StateLock(Pool())

    /// Runs `job` on a thread, after those that came before it.
    package func run(_ job: any NotifierJob) {
        let (idle, new) = pool.withLock { pool -> (Worker?, Worker?) in
            pool.jobs.append(job)
            if let idle = pool.idle.popLast() { return (idle, nil) }
            guard pool.workers.count < Self.threadLimit else { return (nil, nil) }
            let new = Worker()
            pool.workers.append(new)
            return (nil, new)
        }
        idle?.semaphore.signal()
        if let new { WorkerThread(name: "state-notifier").start { self.serve(new) } }
    }

    /// How many threads there are.
    package var threadCount: Int { pool.withLock { $0.workers.count } }

    // MARK: A thread's life

    private func serve(_ worker: Worker) {
        while true {
            if let job = nextJob(worker) {
                job.run()
            } else {
                worker.semaphore.wait(nanoseconds: Self.idleNanoseconds)
                if mayEnd(worker) { return }
            }
        }
    }

    private func nextJob(_ worker: Worker) -> (any NotifierJob)? {
        let now = clinux_monotonic_nanoseconds()
        let (job, done) = pool.withLock { pool -> ((any NotifierJob)?, Work?) in
            // Handed out, so that finished work is not freed under the lock.
            let done = worker.work
            let job = pool.jobs.popFirst()
            worker.work = job.map { Work(job: $0, start: now) }
            if job == nil { pool.idle.append(worker) }
            return (job, done)
        }
        _ = done
        if job != nil, StateTrace.isEnabled { watch() }
        return job
    }

    /// Whether nobody took `worker` from the idle ones; it is then removed from the pool.
    private func mayEnd(_ worker: Worker) -> Bool {
        pool.withLock { pool in
            guard let place = pool.idle.firstIndex(where: { $0 === worker }) else { return false }
            pool.idle.remove(at: place)
            pool.workers.removeAll { $0 === worker }
            return true
        }
    }

    // MARK: Slow work

    /// Starts a thread that looks for slow work while there is any, unless there is one.
    func watch() {
        let begins = pool.withLock { pool in
            guard !pool.isWatched else { return false }
            pool.isWatched = true
            return true
        }
        guard begins else { return }
        WorkerThread(name: "state-watch").start {
            let semaphore = BlockingSemaphore()
            while let pause = self.nameSlowWork() { semaphore.wait(nanoseconds: pause) }
        }
    }

    /// - Returns: The time until the next work becomes slow; nil: all slow work is reported, and
    ///   nobody looks any more.
    private func nameSlowWork() -> Int64? {
        let now = clinux_monotonic_nanoseconds()
        let (slow, next) = pool.withLock { pool -> ([any NotifierJob], Int64?) in
            var slow: [any NotifierJob] = []
            var next: Int64?
            for worker in pool.workers {
                guard let work = worker.work, !work.isNamed else { continue }
                let rest = work.start + Self.slowNanoseconds - now
                if rest <= 0 {
                    slow.append(work.job)
                    worker.work?.isNamed = true
                } else {
                    next = min(rest, next ?? rest)
                }
            }
            pool.isWatched = next != nil
            return (slow, next)
        }
        for job in slow {
            let subject = job.subject
            StateTrace.note(.slow(subject.key, who: subject.who))
        }
        return next
    }
}
