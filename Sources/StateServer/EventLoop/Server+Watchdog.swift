import CLinux
import StateEngine

/// Signs of life for the service manager, which ends and restarts a daemon that gives none.
///
/// The loop gives them, so they stop with it; and they stop if the commit thread is stuck
/// (``CommitThreadWatch``). A slow or full disk is no reason: a restart would not mend it, and
/// meanwhile reads are answered.
extension Server {
    func giveSignOfLife() {
        guard let watchdog = options.watchdog else { return }
        timers.set(.watchdog, at: SystemClock.monotonicMilliseconds() + watchdog.milliseconds)
        if let finding = turn.commitThread.look(at: keyspace) {
            options.log(.error, .commitThreadStalled, "\(finding): no sign of life is given")
        } else {
            watchdog.report()
        }
    }
}

/// Finds at the signs of life if the commit thread is stuck: commits wait that it does not take, or
/// it computes without an end. (If the loop commits itself, its substitute gives the signs of life.)
///
/// A thread that waits for the disk takes hardly any processor time. So one that has used a quarter of
/// the time since the last sign for one thing is not slow but stuck; once may be a large commit.
struct CommitThreadWatch {
    private var neglectsCommits = false
    private var isBusy = false
    /// The time, what the thread did, and what it had used.
    private var last: (time: Int64, number: Int, used: Int64)?
    /// When the thing was first seen that it does now.
    private var since: Int64 = 0

    /// - Returns: What is wrong, as the beginning of a sentence; nil if nothing is.
    mutating func look(at keyspace: LocalKeyspace) -> String? {
        let (neglectedBefore, wasBusy) = (neglectsCommits, isBusy)
        neglectsCommits = keyspace.neglectsCommits
        noteUse(keyspace)
        // Once may be while the thread wakes up.
        if neglectedBefore, neglectsCommits { return "the commit thread takes no commits" }
        guard wasBusy, isBusy else { return nil }
        let seconds = (clinux_monotonic_nanoseconds() - since) / 1_000_000_000
        return "the commit thread has computed for \(seconds) s without an end"
    }

    private mutating func noteUse(_ keyspace: LocalKeyspace) {
        let now = clinux_monotonic_nanoseconds()
        let use = keyspace.storageUse
        if let last, let use, last.number == use.number {
            isBusy = use.nanoseconds - last.used > (now - last.time) / 4
        } else {
            (isBusy, since) = (false, now)
        }
        last = use.map { (now, $0.number, $0.nanoseconds) }
    }
}
