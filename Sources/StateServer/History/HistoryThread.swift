import CLinux
import Glibc
import StateEngine
import Synchronization

/// A read of the history on disk, in slices, for the loop.
///
/// The history thread uses it from ``HistoryThread/submit(_:)`` until it is returned, the loop
/// before and after: this justifies the `@unchecked Sendable` of conforming types.
protocol HistoryJob: AnyObject, Sendable {
    /// Reads for at most about 50 ms, on the history thread.
    ///
    /// - Returns: Whether the read is complete.
    /// - Throws: Why it cannot be read; `finish` gets the error.
    func readSlice(of history: any HistoryReading) throws -> Bool

    /// The connection that waits for it, and whether it still does.
    var control: JobControl { get }

    /// Bytes that it holds after a slice; called on the history thread.
    var byteCount: Int { get }

    /// Bytes of changes that it collected meanwhile; called on the loop thread.
    var meanwhileByteCount: Int { get }

    /// Handles the result, on the loop thread. If the job was cancelled, it releases what it holds.
    func finish(_ failure: StateError?, in server: Server)

    /// Whether nobody waits for a reply: other clients come first.
    var isBackground: Bool { get }
}

extension HistoryJob {
    var isBackground: Bool { true }
    var meanwhileByteCount: Int { 0 }
}

extension StateError {
    /// The read ended with its connection.
    static let cancelled = StateError(.err, "the connection ended")
}

/// The thread that reads the history, so that the loop never waits for the disk.
///
/// Jobs take turns, a slice each: one that reads a million changes delays others only by a slice.
/// If clients send meanwhile, a rest three times as long follows each slice of background work. On
/// two processors, both used by the loop and its clients, a watcher that caught up without a pause
/// made the p99 of 50 clients' GETs two to nine times as long.
final class HistoryThread: Sendable {
    private struct State {
        var waiting: [any HistoryJob] = []
        var done: [(job: any HistoryJob, failure: StateError?)] = []
        /// Jobs that hold more memory than was reported to the loop.
        var grown: [JobControl] = []
        var isStopping = false
    }

    private let backing: any HistoryBacking
    private let keyspace: LocalKeyspace
    private let state = StateLock(State())
    private let parking = BlockingSemaphore()
    private let thread = WorkerThread(name: "history")
    /// How often clients have sent something; the loop counts.
    let activity = Atomic(0)
    /// The processor that the loop used last; -1 if unknown.
    let loopProcessor = Atomic<Int32>(-1)
    /// The longest rest between slices of one user's replies, in nanoseconds; 0 if there is only
    /// one user.
    let longestRest = Atomic<Int64>(0)
    private let wake: @Sendable () -> Void

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - backing: The backing of the history; it is loaded, and closed only after this thread has
    ///     stopped.
    ///   - keyspace: What it is the history of.
    ///   - wake: Called on the thread when there is something to ``takeDone()``.
    init(
        _ backing: any HistoryBacking,
        of keyspace: LocalKeyspace,
        wake: @escaping @Sendable () -> Void
    ) {
        (self.backing, self.keyspace) = (backing, keyspace)
        self.wake = wake
        thread.start { [weak self] in
            // The thread is stopped before this object is freed.
            if let self { HistoryThread.run(self) }
        }
    }

    /// Submits a job.
    func submit(_ job: any HistoryJob) {
        state.withLock { $0.waiting.append(job) }
        parking.signal()
    }

    /// The jobs that finished since the last call.
    func takeDone() -> [(job: any HistoryJob, failure: StateError?)] {
        state.withLock { state in
            defer { state.done = [] }
            return state.done
        }
    }

    /// Returns cancelled jobs to the loop; the one that is reading comes back after its slice.
    func dropCancelled() {
        let count = state.withLock { state in
            let dropped = state.waiting.filter { $0.control.isCancelled }
            state.waiting.removeAll { $0.control.isCancelled }
            state.done += dropped.map { ($0, .cancelled) }
            return dropped.count
        }
        if count > 0 { wake() }
    }

    /// The jobs whose memory changed since the last call.
    func takeGrown() -> [JobControl] {
        state.withLock { state in
            defer { state.grown = [] }
            return state.grown
        }
    }

    /// Ends the thread after the current slice; unfinished jobs are dropped.
    func stop() {
        state.withLock { $0.isStopping = true }
        parking.signal()
        thread.join()
    }

    private static func run(_ thread: HistoryThread) {
        // Clients that wait for values in memory come first.
        clinux_schedule_as_batch()
        // Only for this thread (0 is the calling thread for the kernel). Beside a watcher that
        // catches up, the p99 of 50 clients' GETs on two processors was 1.25 to 1.42 times that
        // without it; with 10 instead of 19, 1.24 to 2.19 times. SCHED_IDLE would starve it.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
        var history: (any HistoryReading)?
        var rests = Rests()
        while let job = thread.next(rests) {
            let start = clinux_monotonic_nanoseconds()
            let before = thread.activity.load(ordering: .relaxed)
            defer {
                if thread.activity.load(ordering: .relaxed) != before {
                    let longest = thread.longestRest.load(ordering: .relaxed)
                    rests.note(job, from: start, longest: longest)
                }
            }
            do {
                // The history has to have everything that was published.
                try thread.keyspace.waitForDeferred()
                let opened = try history ?? thread.backing.openHistory()
                history = opened
                let isWhole = try thread.besideTheLoop {
                    let used = ProcessorClock.nanoseconds
                    defer { job.control.add(nanoseconds: ProcessorClock.nanoseconds - used) }
                    return try job.readSlice(of: opened)
                }
                thread.noteGrowth(of: job)
                if job.control.isCancelled {
                    thread.hand(job, .cancelled)
                } else if isWhole {
                    thread.hand(job, nil)
                } else {
                    thread.submit(job)
                }
            } catch let error as StateError {
                // These errors concern only this request; others mean that the connection must be
                // reopened.
                if error.code != .compacted, error.code != .tooBig { history = nil }
                thread.hand(job, error)
            } catch {
                // A new connection to the store may work again.
                history = nil
                thread.hand(job, StateError(.storage, "the history cannot be read: \(error)"))
            }
        }
    }

    /// Runs `body` on another processor than the loop's, if there is one.
    ///
    /// If the loop has used more than its share, a thread of the lowest priority that was just
    /// woken still preempts it, and keeps the processor until the next tick: GETs waited 4 ms while
    /// the other processor was idle (perf sched, Linux 6.18).
    private func besideTheLoop<R>(_ body: () throws -> R) throws -> R {
        var before = clinux_processors()
        let isMoved =
            clinux_leave_processor(loopProcessor.load(ordering: .relaxed), &before) != 0
        defer { if isMoved { clinux_use_processors(&before) } }
        return try body()
    }

    /// The next job; nil at the end.
    private func next(_ rests: Rests) -> (any HistoryJob)? {
        while true {
            let now = clinux_monotonic_nanoseconds()
            let (job, end, isStopping) = state.withLock { state in
                let index = state.waiting.firstIndex {
                    rests.end(for: $0) <= now || $0.control.isCancelled
                }
                let job = index.map { state.waiting.remove(at: $0) }
                return (job, state.waiting.map { rests.end(for: $0) }.min(), state.isStopping)
            }
            if isStopping { return nil }
            if let job, job.control.isCancelled {
                hand(job, .cancelled)
                continue
            }
            if let job { return job }
            parking.wait(nanoseconds: end.map { max(1, $0 - now) })
        }
    }

    private func noteGrowth(of job: any HistoryJob) {
        guard job.control.note(byteCount: job.byteCount) else { return }
        state.withLock { $0.grown.append(job.control) }
        wake()
    }

    private func hand(_ job: any HistoryJob, _ failure: StateError?) {
        state.withLock { $0.done.append((job, failure)) }
        wake()
    }
}

/// How long jobs wait so that others are served.
///
/// A reply with large values uses the thread and memory bandwidth: beside a user who asked for
/// histories of 24 MiB without a pause, GETs of 10 clients had a p99 of 0.6 ms, three times as long
/// as without.
private struct Rests {
    private var background: Int64 = 0
    private var byUser: [UInt32: Int64] = [:]

    /// On the monotonic clock, in nanoseconds.
    func end(for job: any HistoryJob) -> Int64 {
        job.isBackground ? background : byUser[job.control.uid] ?? 0
    }

    /// Records the end of a slice of `job` during which others sent something.
    mutating func note(_ job: any HistoryJob, from start: Int64, longest: Int64) {
        let now = clinux_monotonic_nanoseconds()
        if job.isBackground {
            background = now + min(3 * (now - start), 50_000_000)
        } else if longest > 0, !job.control.isPrivileged {
            if byUser.count > 64 { byUser = byUser.filter { $0.value > now } }
            byUser[job.control.uid] = now + min(100 * (now - start), longest)
        }
    }
}
