import StateClient
import StateEngine
package import StateTestSupport

/// Writers, watchers, compaction and a daemon that is killed again and again; then what every watcher was told is held
/// against what was committed.
///
/// While the daemon is down nobody writes, so that what became of the transactions without an answer can be asked for
/// before anything else happens. The sessions that ended are checked then, and forgotten.
package final class GuaranteeRun {
    private let plan: RunPlan
    private let daemon: Daemon
    private let store: RunStore
    private let board = RunBoard()
    private var record = CommitRecord()
    private var random: SplitMix

    /// What was seen so far.
    package private(set) var report: RunReport

    /// Takes a line after each kill.
    package var tell: (String) -> Void = { _ in }

    /// Starts the daemon, whose socket, data and log are in `directory`.
    package init(_ plan: RunPlan, in directory: TemporaryDirectory) throws {
        self.plan = plan
        daemon = try Daemon(directory: directory)
        store = try RunStore(daemon)
        random = SplitMix(seed: plan.seed)
        report = RunReport()
        ByteSocket.allow(1_024)
    }

    /// Runs to the end, or to the first session that breaks a guarantee.
    ///
    /// - Returns: Where guarantees are broken.
    /// - Throws: ``SystemFailure`` where something else is wrong.
    package func run() throws -> [Violation] {
        let threads = startThreads()
        do {
            let violations = try drive()
            // Whoever still waits has nothing to wait for.
            if !violations.isEmpty { board.fail("a guarantee is broken") }
            for thread in threads { thread.join() }
            if violations.isEmpty { try checkFault() }
            return violations.isEmpty ? try finish() : violations
        } catch {
            board.fail("\(error)")
            for thread in threads { thread.join() }
            throw error
        }
    }

    /// Kills the daemon as often as planned; at the end sets every key once more, so that every watcher has to be told.
    private func drive() throws -> [Violation] {
        board.stage.update { ($0.generation, $0.openGeneration) = (1, 1) }
        let slice = plan.seconds * 1_000 / (plan.killCount + 1)
        for kill in 1...plan.killCount + 1 {
            let milliseconds = Int.random(in: slice / 2...slice * 3 / 2, using: &random)
            _ = board.stage.wait(milliseconds: milliseconds) { $0.fault != nil }
            try checkDaemon(kill)
            let isLast = kill == plan.killCount + 1
            if isLast { board.stage.update { $0.openGeneration = 0 } } else { daemon.kill() }
            try awaitWriters(kill)
            if !isLast { try daemon.start(within: .seconds(60)) }
            let violations = try settle(generation: isLast ? nil : kill + 1)
            let counts = "\(report.commitCount) commits, \(report.sessionCount) sessions so far"
            if !isLast { tell("kill \(kill) after \(milliseconds) ms: \(counts)") }
            guard violations.isEmpty else { return violations }
        }
        return []
    }

    /// A daemon that ended by itself must not pass for one that was killed.
    private func checkDaemon(_ kill: Int) throws {
        try checkFault()
        guard board.stage.current.parkedCount == plan.writerCount * (kill - 1) else {
            throw SystemFailure("writers lost the daemon before it was killed: \(daemon.log)")
        }
    }

    private func awaitWriters(_ kill: Int) throws {
        let count = plan.writerCount * kill
        let areParked = board.stage.wait(seconds: 120) {
            $0.parkedCount >= count || $0.fault != nil
        }
        guard areParked else { throw SystemFailure("the writers go on without a daemon") }
        try checkFault()
    }

    private func checkFault() throws {
        if let fault = board.stage.current.fault { throw SystemFailure(fault) }
    }

    /// Adds what was written to the record, lets everybody go on, and checks the sessions that ended; `generation` is that of
    /// the daemon that was started, nil where everything has been written.
    private func settle(generation: Int?) throws -> [Violation] {
        // The watchers do not wait for any of this.
        if let generation { board.stage.update { $0.generation = generation } }
        let sessions = board.takeSessions()
        let history = try RunHistory(daemon.socketPath)
        try history.settle(board.takeWritten(), into: &record)
        if let generation {
            board.stage.update { $0.openGeneration = generation }
        } else {
            try writeLast()
        }
        return check(sessions)
    }

    private func writeLast() throws {
        let transaction = WriterTransaction(settingAllKeysTo: "last")
        let reply = try RunStore.asking(daemon.socketPath)(transaction.requests[0])
        guard case .committed(let revision) = transaction.outcome(of: reply) else {
            throw SystemFailure("the last commit: \(reply)")
        }
        record.append(revision, transaction.steps)
        board.stage.update { $0.lastRevision = revision }
    }

    private func check(_ sessions: [WatchSession]) -> [Violation] {
        var violations: [Violation] = []
        for session in sessions {
            let found = SessionCheck(session, against: record).violations()
            report.add(session, found)
            violations += found
        }
        report.commitCount = record.commits.count
        report.compactedRevision = board.compacted
        return violations
    }

    /// Checks the last sessions, and what is left of the history.
    private func finish() throws -> [Violation] {
        let violations = check(board.takeSessions())
        if violations.isEmpty { try RunHistory(daemon.socketPath).compareHistory(with: record) }
        try daemon.stop()
        return violations
    }

    private func startThreads() -> [WorkerThread] {
        let (plan, store, board) = (plan, store, board)
        var threads = (0..<plan.writerCount).map { number in
            let thread = WorkerThread(name: "writer \(number)")
            thread.start {
                var writer = RunWriter(number, plan, store.socketPath, board)
                writer.work()
            }
            return thread
        }
        threads += (0..<plan.watcherCount).map { number in
            let thread = WorkerThread(name: "watcher \(number)")
            thread.start {
                var watcher = RunWatcher(number, plan, store, board)
                watcher.work()
            }
            return thread
        }
        guard store.abilities.hasCompaction else { return threads }
        let thread = WorkerThread(name: "compactor")
        thread.start {
            var compactor = RunCompactor(plan, store.socketPath, board)
            compactor.work()
        }
        return threads + [thread]
    }
}
