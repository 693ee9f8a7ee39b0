import StateEngine

/// Signs of life for the service manager, which ends and restarts a daemon that gives none.
///
/// The loop gives them, so they stop with it; and they stop if commits wait that the commit thread
/// does not take. A slow or full disk is no reason: a restart would not mend it, and meanwhile reads
/// are answered.
extension Server {
    func giveSignOfLife() {
        guard let watchdog = options.watchdog else { return }
        timers.set(.watchdog, at: SystemClock.monotonicMilliseconds() + watchdog.milliseconds)
        let wasNeglected = turn.neglectsCommits
        turn.neglectsCommits = keyspace.neglectsCommits
        // Once may be while the thread wakes up.
        if wasNeglected, turn.neglectsCommits {
            options.log(
                .error,
                .commitThreadStalled,
                "the commit thread takes no commits: no sign of life is given"
            )
        } else {
            watchdog.report()
        }
    }
}
