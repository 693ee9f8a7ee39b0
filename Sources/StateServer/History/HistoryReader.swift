import StateEngine

/// Has jobs read from the history, for commands and watches.
///
/// Everything belongs to the loop thread.
final class HistoryReader {
    private let backing: (any HistoryBacking)?
    private let registry: Registry
    private let access: AccessChanges
    private let wake: @Sendable () -> Void
    /// Begun when the history is first asked for.
    private(set) var thread: HistoryThread?
    /// Jobs that are done and wait until there is room for what they write.
    private var waitingForRoom: [any HistoryJob] = []

    init(
        _ backing: (any HistoryBacking)?,
        _ registry: Registry,
        _ access: AccessChanges,
        wake: @escaping @Sendable () -> Void
    ) {
        (self.backing, self.registry, self.access, self.wake) = (backing, registry, access, wake)
    }

    /// Has the reply of a command read from the history; the connection waits.
    func read(_ job: some ConnectionJob) { read(job, for: job.connection) }

    /// The same with a job that answers in its own way.
    func read(_ job: some HistoryJob, for connection: Connection) {
        connection.inbound.awaitsLateReply = true
        connection.session.accessCount = access.count
        submit(job)
    }

    /// Has a job read; only if the keyspace has a history.
    func submit(_ job: any HistoryJob) {
        guard let backing else { preconditionFailure("there is no history to read") }
        let thread = thread ?? HistoryThread(backing, wake: wake)
        self.thread = thread
        add(job)
        thread.submit(job)
    }

    private func add(_ job: any HistoryJob) {
        guard let connection = registry.all[job.control.connection] else { return }
        connection.inbound.jobs.append(job)
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
        guard !connection.inbound.jobs.isEmpty else { return }
        for job in connection.inbound.jobs { job.control.cancel() }
        connection.inbound.jobs = []
        thread?.dropCancelled()
        // Those that only wait for room end in the next turn.
        if !waitingForRoom.isEmpty { wake() }
    }

    /// Takes out the jobs that are done, and those that waited for room.
    func takeDone() -> [(job: any HistoryJob, failure: StateError?)] {
        guard let thread else { return [] }
        let waiting = waitingForRoom.map { (job: $0, failure: nil as StateError?) }
        waitingForRoom = []
        return waiting + thread.takeDone()
    }

    func stop() {
        thread?.stop()
        thread = nil
    }
}
