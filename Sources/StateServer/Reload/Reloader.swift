import StateEngine

/// Has a configuration read, as often as it is asked for, one time after the other.
///
/// Everything but the mailbox belongs to the loop thread.
final class Reloader {
    let source: ConfigurationSource
    private let mailbox: ReloadMailbox
    /// Who waits, the first of them for what is being read; nil for a signal, of whose outcome only the log tells.
    private var waiting: [Connection?] = []
    private var thread: WorkerThread?
    /// What was taken over, while what it has moved is on its way to storage.
    var unsettled: Unsettled?
    /// The first revision under what was taken over last.
    var revision: Int64 = 0
    /// Where keys may live elsewhere than the rules say, for storage has refused a commit that stood on others.
    var movingBack: MovingBack?

    struct Unsettled {
        var report: ReloadReport
        /// Why nobody knows whether storage has it, until the store is open again.
        var doubt: StateError?
    }

    struct MovingBack {
        /// The commit that is on its way to storage, and how many keys it moves; 0 where none is.
        var revision: Int64 = 0
        var count = 0
        /// When it is to be tried, on the monotonic clock.
        var due: Int64
        /// How long the next try waits where that fails, in milliseconds.
        var pause: Int64 = 1_000
        /// Whether the log says that it could not be done yet.
        var isSaid = false
    }

    /// Whether the next reading waits: it is compared with what is in force, and what moves by it with where keys are.
    private var isSettling: Bool { unsettled != nil || movingBack.map { $0.revision > 0 } ?? false }

    /// Whether something is being read, which moves all that there is to move.
    var isReading: Bool { thread != nil }

    /// - Parameters:
    ///   - source: Where it comes from.
    ///   - wakeup: Woken when something has been read.
    init(_ source: ConfigurationSource, wakeup: Wakeup) {
        self.source = source
        mailbox = ReloadMailbox(wakeup)
    }

    /// Has the configuration read once more: what somebody reads already may be older than what is asked for.
    func add(_ connection: Connection?) {
        // One that has not begun answers for any number of signals.
        if connection == nil, waiting.dropFirst().contains(where: { $0 == nil }) { return }
        waiting.append(connection)
        if waiting.count == 1, !isSettling { start() }
    }

    private func start() {
        let thread = WorkerThread(name: "reload")
        self.thread = thread
        thread.start { [source, mailbox] in
            mailbox.put(Result { () throws(StateError) in try source.read() })
        }
    }

    /// What was read, and for whom; nil where nothing was.
    ///
    /// The next reading begins with ``startNext()``.
    func takeRead() -> (connection: Connection?, Result<ConfigurationSource.Change, StateError>)? {
        guard let outcome = mailbox.take() else { return nil }
        thread?.join()
        thread = nil
        return (waiting.removeFirst(), outcome)
    }

    /// Begins the next reading, once what was read before is taken over, which the next one is compared with.
    func startNext() {
        guard !isSettling, thread == nil else { return }
        waiting.removeAll { $0?.isClosed ?? false }
        if !waiting.isEmpty { start() }
    }

    /// What is being read is for nobody any more; its thread ends by itself.
    func stop() { mailbox.close() }
}

/// What was read, on its way from the thread that read it to the loop.
private final class ReloadMailbox: Sendable {
    private struct State {
        var outcome: Result<ConfigurationSource.Change, StateError>?
        /// Nil once nobody waits.
        var wakeup: Wakeup?
    }

    private let state: StateLock<State>

    init(_ wakeup: Wakeup) { state = StateLock(State(wakeup: wakeup)) }

    func put(_ outcome: Result<ConfigurationSource.Change, StateError>) {
        state.withLock { state in
            state.outcome = outcome
            state.wakeup?.wake()
        }
    }

    func take() -> Result<ConfigurationSource.Change, StateError>? {
        state.withLock { state in
            defer { state.outcome = nil }
            return state.outcome
        }
    }

    func close() { state.withLock { $0.wakeup = nil } }
}
