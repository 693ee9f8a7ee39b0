import StateEngine

/// Reads a configuration for each request, one after the other.
///
/// Everything but the mailbox is used only by the loop thread.
final class Reloader {
    let source: ConfigurationSource
    /// What a read has found.
    enum Outcome {
        case change(Result<ConfigurationSource.Change, StateError>)
        case preview(Result<ReloadPreview, StateError>)
    }

    private let mailbox: ReloadMailbox
    /// The waiting connections, and whether they only want a preview; the first waits for the
    /// current read.
    ///
    /// Nil stands for a signal, whose result only goes to the log.
    private var waiting: [(connection: Connection?, isPreview: Bool)] = []
    private var thread: WorkerThread?

    /// - Parameters:
    ///   - source: The source.
    ///   - wakeup: Woken after each read.
    init(_ source: ConfigurationSource, wakeup: Wakeup) {
        self.source = source
        mailbox = ReloadMailbox(wakeup)
    }

    /// Requests another read: a running one may have started before the file was changed.
    func add(_ connection: Connection?, isPreview: Bool = false) {
        // One read that has not begun is enough for any number of signals.
        if connection == nil, waiting.dropFirst().contains(where: { $0.connection == nil }) {
            return
        }
        waiting.append((connection, isPreview))
        if waiting.count == 1 { start() }
    }

    private func start() {
        let thread = WorkerThread(name: "reload")
        self.thread = thread
        let isPreview = waiting[0].isPreview
        thread.start { [source, mailbox] in
            mailbox.put(
                isPreview
                    ? .preview(Result { () throws(StateError) in try source.preview() })
                    : .change(Result { () throws(StateError) in try source.read() })
            )
        }
    }

    /// The result of a read, and its connection; nil if there is none.
    ///
    /// The next reading begins with ``startNext()``.
    func takeRead() -> (connection: Connection?, Outcome)? {
        guard let outcome = mailbox.take() else { return nil }
        thread?.join()
        thread = nil
        return (waiting.removeFirst().connection, outcome)
    }

    /// Begins the next read after the result of the last one was applied, because the next is
    /// compared with it.
    func startNext() {
        waiting.removeAll { $0.connection?.isClosed ?? false }
        if !waiting.isEmpty { start() }
    }

    /// Drops a running read; its thread ends by itself.
    func stop() { mailbox.close() }
}

/// Passes the result of a read from its thread to the loop.
private final class ReloadMailbox: Sendable {
    private struct State {
        var outcome: Reloader.Outcome?
        /// Nil once the reloader has stopped.
        var wakeup: Wakeup?
    }

    private let state: StateLock<State>

    init(_ wakeup: Wakeup) { state = StateLock(State(wakeup: wakeup)) }

    func put(_ outcome: Reloader.Outcome) {
        state.withLock { state in
            state.outcome = outcome
            state.wakeup?.wake(for: .configuration)
        }
    }

    func take() -> Reloader.Outcome? {
        state.withLock { state in
            defer { state.outcome = nil }
            return state.outcome
        }
    }

    func close() { state.withLock { $0.wakeup = nil } }
}
