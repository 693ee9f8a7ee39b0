import CLinux
import Glibc
import StateEngine
import Synchronization

/// Something that is read from the history on disk, in slices, for the loop.
///
/// It belongs to the history thread from ``HistoryThread/submit(_:)`` until it is handed back, and to the loop before and after:
/// the proof of the `@unchecked Sendable` of who conforms.
protocol HistoryJob: AnyObject, Sendable {
    /// Reads for at most about 50 ms, on the history thread.
    ///
    /// - Returns: Whether that was all.
    /// - Throws: Why it cannot be read; `finish` is told.
    func readSlice(of history: any HistoryReading) throws -> Bool

    /// Who waits for it, and whether anybody still does.
    var control: JobControl { get }

    /// Bytes that it holds after a slice, on the history thread.
    var byteCount: Int { get }

    /// Bytes that it has noted meanwhile, on the loop thread.
    var meanwhileByteCount: Int { get }

    /// Takes over what was read, on the loop thread; where the job was cancelled, it gives back what it holds.
    func finish(_ failure: StateError?, in server: Server)

    /// Whether nobody waits for a reply: the other clients go first.
    var isBackground: Bool { get }
}

extension HistoryJob {
    var isBackground: Bool { true }
    var meanwhileByteCount: Int { 0 }
}

extension StateError {
    /// What was being read ended with its connection.
    static let cancelled = StateError(.err, "nobody waits for it any more")
}

/// The thread that reads the history, so that the loop never waits for the disk.
///
/// Jobs take turns, a slice each: one that reads a million changes keeps no other waiting for more than its slice. If clients
/// send meanwhile, a slice of background work is followed by a rest three times as long: on two processors, all of which the loop
/// and its clients use, a watcher that caught up without a pause made the p99 of 50 clients' GETs two to nine times as long.
final class HistoryThread: Sendable {
    private struct State {
        var waiting: [any HistoryJob] = []
        var done: [(job: any HistoryJob, failure: StateError?)] = []
        /// Jobs that hold more than the loop was told of.
        var grown: [JobControl] = []
        var isStopping = false
    }

    private let backing: any HistoryBacking
    private let state = StateLock(State())
    private let parking = BlockingSemaphore()
    private let thread = WorkerThread(name: "history")
    /// How often clients have sent something: the loop counts.
    let activity = Atomic(0)
    /// The processor that the loop used last; -1 if it is unknown.
    let loopProcessor = Atomic<Int32>(-1)
    /// The longest rest between slices of one user's replies, in nanoseconds; 0 while there is one user only.
    let longestRest = Atomic<Int64>(0)
    private let wake: @Sendable () -> Void

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - backing: Whose history is read; it is loaded, and closed later than this thread is stopped.
    ///   - wake: Called on the thread when there is something to ``takeDone()``.
    init(_ backing: any HistoryBacking, wake: @escaping @Sendable () -> Void) {
        self.backing = backing
        self.wake = wake
        thread.start { [weak self] in
            // The thread is stopped before this object goes.
            if let self { HistoryThread.run(self) }
        }
    }

    /// Has a job read.
    func submit(_ job: any HistoryJob) {
        state.withLock { $0.waiting.append(job) }
        parking.signal()
    }

    /// The jobs that are done since the last call.
    func takeDone() -> [(job: any HistoryJob, failure: StateError?)] {
        state.withLock { state in
            defer { state.done = [] }
            return state.done
        }
    }

    /// Hands the jobs back that nobody waits for any more; the one that is reading comes back after its slice.
    func dropCancelled() {
        let count = state.withLock { state in
            let dropped = state.waiting.filter { $0.control.isCancelled }
            state.waiting.removeAll { $0.control.isCancelled }
            state.done += dropped.map { ($0, .cancelled) }
            return dropped.count
        }
        if count > 0 { wake() }
    }

    /// The jobs that hold more than before, or less, since the last call.
    func takeGrown() -> [JobControl] {
        state.withLock { state in
            defer { state.grown = [] }
            return state.grown
        }
    }

    /// Ends the thread after the slice at hand; jobs that are not done are dropped.
    func stop() {
        state.withLock { $0.isStopping = true }
        parking.signal()
        thread.join()
    }

    private static func run(_ thread: HistoryThread) {
        // Whoever waits for a value that is in memory goes first.
        clinux_schedule_as_batch()
        // Of this thread alone (0 is the caller, as the kernel counts threads). Beside a watcher that catches up, the p99 of 50
        // clients' GETs on two processors was 1.25 to 1.42 of that without it, and 1.24 to 2.19 at 10 in place of 19;
        // SCHED_IDLE would starve it.
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
                // What was asked for is refused, nothing stands in the way of the next.
                if error.code != .compacted, error.code != .tooBig { history = nil }
                thread.hand(job, error)
            } catch {
                // What stands in the way of this connection may not be in the way of a new one.
                history = nil
                thread.hand(job, StateError(.storage, "the history cannot be read: \(error)"))
            }
        }
    }

    /// Runs `body` on another processor than the loop's, if there is one.
    ///
    /// A thread of the least priority that was just woken goes before the loop all the same if the loop has used more than its share,
    /// and keeps the processor until the next tick: GETs waited 4 ms while the other processor was idle (perf sched, Linux 6.18).
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

/// Until when jobs wait so that others are served.
///
/// A reply of large values takes the thread and the memory of the machine: GETs of 10 clients beside one user who asked for
/// histories of 24 MiB without a pause had a p99 of 0.6 ms, three times that without.
private struct Rests {
    private var background: Int64 = 0
    private var byUser: [UInt32: Int64] = [:]

    /// On the monotonic clock, in nanoseconds.
    func end(for job: any HistoryJob) -> Int64 {
        job.isBackground ? background : byUser[job.control.uid] ?? 0
    }

    /// Notes that a slice of `job` has ended, during which others sent something.
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
