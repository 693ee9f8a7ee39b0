import StateEngine

/// Submits reads of the history, for commands and watches.
///
/// Used only by the loop thread.
final class HistoryReader {
    private let keyspace: LocalKeyspace
    private let registry: Registry
    private let access: AccessChanges
    private let wake: @Sendable () -> Void
    /// Started at the first read.
    private(set) var thread: HistoryThread?
    /// Finished jobs that wait until there is room for their writes.
    private var waitingForRoom: [any HistoryJob] = []

    init(
        _ keyspace: LocalKeyspace,
        _ registry: Registry,
        _ access: AccessChanges,
        wake: @escaping @Sendable () -> Void
    ) {
        (self.keyspace, self.registry, self.access, self.wake) = (keyspace, registry, access, wake)
    }

    /// Reads the reply of a command from the history; the connection waits.
    func read(_ job: some ConnectionJob) { read(job, for: job.connection) }

    /// The same for a job that sends its own reply.
    func read(_ job: some HistoryJob, for connection: Connection) {
        connection.inbound.awaitsLateReply = true
        connection.session.accessCount = access.count
        submit(job)
    }

    /// Submits a job; only if the keyspace has a history.
    func submit(_ job: any HistoryJob) {
        guard let backing = keyspace.history else {
            preconditionFailure("there is no history to read")
        }
        let thread = thread ?? HistoryThread(backing, of: keyspace, wake: wake)
        self.thread = thread
        add(job)
        thread.submit(job)
    }

    private func add(_ job: any HistoryJob) {
        guard let connection = registry.all[job.control.connection] else { return }
        connection.inbound.jobs.append(job)
        registry.reading[connection.number] = connection
    }

    /// Lets a job finish once fewer changes wait for storage.
    func finishLater(_ job: any HistoryJob) {
        waitingForRoom.append(job)
        add(job)
    }

    /// Cancels the reads for a connection, because nobody waits for them any more.
    func endJobs(of connection: Connection) {
        registry.reading[connection.number] = nil
        guard !connection.inbound.jobs.isEmpty else { return }
        for job in connection.inbound.jobs { job.control.cancel() }
        connection.inbound.jobs = []
        thread?.dropCancelled()
        // Jobs that only wait for room end in the next turn.
        if !waitingForRoom.isEmpty { wake() }
    }

    /// Removes and returns the finished jobs, and those that waited for room.
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
