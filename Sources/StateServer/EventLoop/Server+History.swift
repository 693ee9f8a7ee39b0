import CLinux
import StateEngine

/// Jobs of the history thread, from the loop and back.
extension Server {
    /// Has a job read from the history; only where the keyspace has one.
    func submit(_ job: any HistoryJob) {
        guard let backing = keyspace.history else {
            preconditionFailure("there is no history to read")
        }
        let thread = history ?? HistoryThread(backing) { [wakeup] in wakeup.wake() }
        history = thread
        add(job)
        thread.submit(job)
    }

    private func add(_ job: any HistoryJob) {
        guard let connection = registry.all[job.control.connection] else { return }
        connection.jobs.append(job)
        registry.reading[connection.number] = connection
    }

    /// Has a job finish once what waits for storage is less.
    func finishLater(_ job: any HistoryJob) {
        waitingForRoom.append(job)
        add(job)
    }

    /// Nobody waits for what is read for a connection: it ends, and gives back what it holds.
    func endJobs(of connection: Connection) {
        registry.reading[connection.number] = nil
        guard !connection.jobs.isEmpty else { return }
        for job in connection.jobs { job.control.cancel() }
        connection.jobs = []
        history?.dropCancelled()
        // Those that only wait for room end in the next turn.
        if !waitingForRoom.isEmpty { wakeup.wake() }
    }

    /// Comes after what storage has answered, which is what makes room.
    func finishHistoryJobs() {
        guard let history else { return }
        let waiting = waitingForRoom
        waitingForRoom = []
        for job in waiting { finish(job, nil) }
        for (job, failure) in history.takeDone() { finish(job, failure) }
        countJobs()
    }

    private func finish(_ job: any HistoryJob, _ failure: StateError?) {
        let connection = registry.all[job.control.connection]
        connection?.jobs.removeAll { $0 === job }
        let start = clinux_monotonic_nanoseconds()
        if let failure, failure.code == .corrupt { noteDamage(failure) }
        job.finish(failure, in: self)
        if !job.isBackground { charge(job.control, since: start) }
        guard let connection, !connection.isClosed else { return }
        if connection.jobs.isEmpty { registry.reading[connection.number] = nil }
        count(connection)
    }

    /// Who has the history read rests as after any long command, also if nobody waits for it any more.
    private func charge(_ job: JobControl, since start: Int64) {
        guard let account = registry.memory.account(of: job.uid) else { return }
        let now = clinux_monotonic_nanoseconds()
        let used = now - start + job.usedNanoseconds
        account.charge(used, at: now, longestRest: job.isPrivileged ? 0 : longestRest)
    }

    /// Counts what jobs hold by now, those that were told so and those that note what is committed.
    private func countJobs() {
        for control in history?.takeGrown() ?? [] {
            if let connection = registry.all[control.connection] { count(connection) }
        }
        for connection in Array(registry.reading.values)
        where connection.blocked != nil
            || connection.jobs.contains(where: { $0.meanwhileByteCount > 0 })
        {
            count(connection)
        }
    }
}
