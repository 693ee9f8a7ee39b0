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
        if waiting.count == 1 { start() }
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
            state.wakeup?.wake(for: .configuration)
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
