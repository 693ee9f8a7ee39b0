import StateEngine

extension StateTransaction {
    /// The same as ``withTransaction(_:)`` for a task, which waits without blocking a thread.
    ///
    /// It has a name of its own, so that in a task too `withTransaction` over containers in memory needs no `await`.
    ///
    /// - Returns: What `body` returned, of the run that was committed.
    /// - Throws: What `body` threw, or why it was refused; nothing has changed.
    @discardableResult
    public nonisolated(nonsending) static func run<R>(
        _ body: (inout StateTransaction) throws -> R
    ) async throws -> R {
        var patience = StalePatience()
        while true {
            var run = try TransactionRun(&patience, body)
            for entry in run.writtenInKeyspace { await entry.turn.take() }
            let commit = try run.begin(commitsOnCaller: false) { _ in }
            await commit?.wait()
            if let done = try run.end(commit) { return done }
        }
    }
}
