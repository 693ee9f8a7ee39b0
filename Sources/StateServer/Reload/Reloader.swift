import StateEngine

/// Reads a configuration for each request, one after the other.
///
/// A read that waits too long for a file is given up, by its name: its request gets an error, and
/// the next one is read by another thread. The thread that was given up ends without an effect once
/// the file answers.
///
/// Everything but the mailboxes is used only by the loop thread.
final class Reloader {
    let source: ConfigurationSource
    /// What a read has found.
    enum Outcome {
        case change(Result<ConfigurationSource.Change, StateError>)
        case preview(Result<ReloadPreview, StateError>)

        static func failure(_ error: StateError, isPreview: Bool) -> Outcome {
            isPreview ? .preview(.failure(error)) : .change(.failure(error))
        }
    }

    /// A read, and the thread that makes it.
    private struct Read {
        let thread = WorkerThread(name: "reload")
        let mailbox: ReloadMailbox
        let wait = ReloadWait()
    }

    /// How long a read may wait for one file.
    private static let waitMilliseconds: Int64 = 10_000
    /// The most threads that still wait for files although their reads were given up.
    private static let hangingLimit = 4

    private let wakeup: Wakeup
    private let timers: TimerQueue
    /// The waiting connections, and whether they only want a preview; the first waits for the
    /// current read.
    ///
    /// Nil stands for a signal, whose result only goes to the log.
    private var waiting: [(connection: Connection?, isPreview: Bool)] = []
    private var read: Read?
    /// The reads that were given up and whose threads have not ended.
    private var hanging: [(wait: ReloadWait, name: String)] = []

    /// - Parameters:
    ///   - source: The source.
    ///   - wakeup: Woken after each read.
    ///   - timers: Those of the loop.
    init(_ source: ConfigurationSource, wakeup: Wakeup, timers: TimerQueue) {
        (self.source, self.wakeup, self.timers) = (source, wakeup, timers)
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
        let (connection, isPreview) = waiting[0]
        let read = Read(mailbox: ReloadMailbox(wakeup))
        self.read = read
        hanging.removeAll { $0.wait.hasEnded }
        if hanging.count >= Reloader.hangingLimit {
            let reason = "\(hanging.count) reloads still wait for \(hanging[0].name)"
            return read.mailbox.put(.failure(.notReloaded(.err, reason), isPreview: isPreview))
        }
        timers.set(.reload, at: SystemClock.monotonicMilliseconds() + Reloader.waitMilliseconds)
        let (mailbox, wait) = (read.mailbox, read.wait)
        let previewed = isPreview ? connection?.subject : nil
        read.thread.start { [source] in
            mailbox.put(
                previewed.map { subject in
                    .preview(Result { () throws(StateError) in try source.preview(wait, subject) })
                } ?? .change(Result { () throws(StateError) in try source.read(wait) })
            )
            wait.noteEnd()
        }
    }

    /// The result of a read, and its connection; nil if there is none.
    ///
    /// The next reading begins with ``startNext()``.
    func takeRead() -> (connection: Connection?, Outcome)? {
        guard let outcome = read?.mailbox.take() else { return nil }
        read?.thread.join()
        return end(with: outcome)
    }

    /// Gives the read up if it has waited too long for one file.
    ///
    /// - Returns: As ``takeRead()``.
    func takeHangingRead(at now: Int64) -> (connection: Connection?, Outcome)? {
        guard let read else { return nil }
        let limit = Reloader.waitMilliseconds
        let (name, since) = read.wait.end(ifSince: now - limit, at: now)
        guard let name else {
            timers.set(.reload, at: since + limit)
            return nil
        }
        read.mailbox.close()
        read.thread.detach()
        hanging.append((read.wait, name))
        let reason = "\(name) has not answered for \(limit / 1_000) s"
        return end(
            with: .failure(.notReloaded(.err, reason), isPreview: waiting[0].isPreview)
        )
    }

    private func end(with outcome: Outcome) -> (connection: Connection?, Outcome) {
        timers.set(.reload, at: nil)
        read = nil
        return (waiting.removeFirst().connection, outcome)
    }

    /// Begins the next read after the result of the last one was applied, because the next is
    /// compared with it.
    func startNext() {
        waiting.removeAll { $0.connection?.isClosed ?? false }
        if !waiting.isEmpty { start() }
    }

    /// Drops a running read; its thread ends by itself.
    func stop() { read?.mailbox.close() }
}

/// Passes the result of a read from its thread to the loop.
private final class ReloadMailbox: Sendable {
    private struct State {
        var outcome: Reloader.Outcome?
        /// Nil once nobody waits for the result.
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
