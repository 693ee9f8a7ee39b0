import StateEngine
import StateTestSupport

/// What the threads of a run tell each other.
final class RunBoard: Sendable {
    /// A transaction that was answered, or not, before the daemon died.
    struct Written: Sendable {
        var transaction: WriterTransaction
        /// nil where nobody knows whether it happened.
        var revision: Int64?
        /// Whatever it became, it came after this revision.
        var after: Int64
    }

    /// What the threads wait for.
    struct Stage: Sendable {
        /// How many daemons have been started.
        var generation = 0
        /// The generation for which the writers write; 0: none.
        var openGeneration = 0
        /// How many writers wait.
        var parkedCount = 0
        /// The last revision of all, once everything has been written.
        var lastRevision: Int64?
        /// What must not happen and is no guarantee of a watch: the run ends.
        var fault: String?
    }

    /// What changes with every commit.
    private struct Told {
        var revision: Int64 = 0
        var compacted: Int64 = 0
        var ofKey: [String: Int64] = [:]
    }

    let stage = Observed(Stage())
    private let told = StateLock(Told())
    private let written = StateLock<[Written]>([])
    private let sessions = StateLock<[WatchSession]>([])

    /// Ends the run; the first sentence stays.
    func fail(_ sentence: String) {
        stage.update { stage in
            if stage.fault == nil { stage.fault = sentence }
            stage.openGeneration = 0
        }
    }

    var hasFault: Bool { stage.current.fault != nil }

    // MARK: Commits

    /// The highest revision that a writer was told.
    var revision: Int64 { told.withLock { $0.revision } }

    /// Notes a commit that was answered, before its watchers are asked for it.
    func note(_ transaction: WriterTransaction, at revision: Int64) {
        told.withLock { told in
            told.revision = max(told.revision, revision)
            for step in transaction.steps where step.value != nil {
                told.ofKey[step.key] = max(told.ofKey[step.key] ?? 0, revision)
            }
        }
    }

    /// The last commit that who asked for these patterns has to be told of; nil where there is none.
    func lastRevision(matching patterns: [WatchPattern]) -> Int64? {
        let revisions = told.withLock { $0.ofKey }
        return revisions.filter { patterns.match($0.key) }.values.max()
    }

    /// Adds what a writer has written since it last did.
    func add(_ transactions: [Written]) { written.withLock { $0 += transactions } }

    /// What was written since this was last asked.
    func takeWritten() -> [Written] {
        written.withLock { written in
            defer { written = [] }
            return written
        }
    }

    // MARK: Compaction

    /// The highest revision to which somebody asked the history to be compacted.
    var compacted: Int64 { told.withLock { $0.compacted } }

    /// Notes the same, before it is asked.
    func noteCompaction(to revision: Int64) {
        told.withLock { $0.compacted = max($0.compacted, revision) }
    }

    // MARK: Sessions

    /// Adds a session that is over.
    func add(_ session: WatchSession) { sessions.withLock { $0.append(session) } }

    /// The sessions that ended since this was last asked.
    func takeSessions() -> [WatchSession] {
        sessions.withLock { sessions in
            defer { sessions = [] }
            return sessions
        }
    }
}
