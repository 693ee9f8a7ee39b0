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
        thread.submit(job)
    }

    /// Has a job finish once what waits for storage is less.
    func finishLater(_ job: any HistoryJob) { waitingForRoom.append(job) }

    /// Comes after what storage has answered, which is what makes room.
    func finishHistoryJobs() {
        guard let history else { return }
        let waiting = waitingForRoom
        waitingForRoom = []
        for job in waiting { job.finish(nil, in: self) }
        for (job, failure) in history.takeDone() { job.finish(failure, in: self) }
    }
}
