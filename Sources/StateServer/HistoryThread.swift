import CLinux
import Glibc
import StateEngine

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

    /// Takes over what was read, on the loop thread.
    func finish(_ failure: StateError?, in server: Server)
}

/// The thread that reads the history, so that the loop never waits for the disk.
///
/// Jobs take turns, a slice each: one that reads a million changes keeps no other waiting for more than its slice.
final class HistoryThread: Sendable {
    private struct State {
        var waiting: [any HistoryJob] = []
        var done: [(job: any HistoryJob, failure: StateError?)] = []
        var isStopping = false
    }

    private let backing: any HistoryBacking
    private let state = StateLock(State())
    private let parking = Semaphore()
    private let thread = WorkerThread(name: "history")
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

    /// Ends the thread after the slice at hand; jobs that are not done are dropped.
    func stop() {
        state.withLock { $0.isStopping = true }
        parking.signal()
        thread.join()
    }

    private static func run(_ thread: HistoryThread) {
        // Whoever waits for a value that is in memory goes first.
        clinux_schedule_as_batch()
        // Of this thread alone (0 is the caller, as the kernel counts threads). Beside a watcher that catches up without a pause,
        // the other clients' GETs are to go first; SCHED_IDLE would starve it on a busy machine.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
        var history: (any HistoryReading)?
        while let job = thread.next() {
            do {
                let opened = try history ?? thread.backing.openHistory()
                history = opened
                if try job.readSlice(of: opened) {
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

    private func next() -> (any HistoryJob)? {
        while true {
            let (job, isStopping) = state.withLock { state in
                (state.waiting.isEmpty ? nil : state.waiting.removeFirst(), state.isStopping)
            }
            if isStopping { return nil }
            if let job { return job }
            parking.wait()
        }
    }

    private func hand(_ job: any HistoryJob, _ failure: StateError?) {
        state.withLock { $0.done.append((job, failure)) }
        wake()
    }
}
