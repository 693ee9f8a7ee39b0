import CLinux
import StateEngine

/// Finished jobs of the history thread.
extension Server {
    /// Finishes jobs; called after the results of storage, which make room.
    func finishHistoryJobs() {
        guard history.thread != nil else { return }
        for (job, failure) in history.takeDone() { finish(job, failure) }
        countJobs()
    }

    private func finish(_ job: any HistoryJob, _ failure: StateError?) {
        let connection = registry.all[job.control.connection]
        connection?.inbound.jobs.removeAll { $0 === job }
        let start = clinux_monotonic_nanoseconds()
        if let failure, failure.code == .corrupt { noteDamage(failure) }
        job.finish(failure, in: self)
        if !job.isBackground { charge(job.control, since: start) }
        guard let connection, !connection.isClosed else { return }
        if connection.inbound.jobs.isEmpty { registry.reading[connection.number] = nil }
        count(connection)
    }

    /// Charges the user of a read of the history as for any long command, even if nobody waits for
    /// it any more.
    private func charge(_ job: JobControl, since start: Int64) {
        guard let account = registry.memory.account(of: job.uid) else { return }
        let now = clinux_monotonic_nanoseconds()
        let used = now - start + job.usedNanoseconds
        account.charge(used, at: now, longestRest: job.isPrivileged ? 0 : longestRest)
    }

    /// Counts the memory that jobs hold now: results of reads, and changes collected meanwhile.
    private func countJobs() {
        for control in history.thread?.takeGrown() ?? [] {
            if let connection = registry.all[control.connection] { count(connection) }
        }
        for connection in Array(registry.reading.values)
        where connection.inbound.blocked != nil
            || connection.inbound.jobs.contains(where: { $0.meanwhileByteCount > 0 })
        {
            count(connection)
        }
    }
}
