import StateEngine

extension StateTransaction {
    /// Like ``withTransaction(file:line:_:)``, but a task waits without blocking its thread.
    ///
    /// It has its own name, so that `withTransaction` over containers in memory needs no `await` in
    /// a task.
    ///
    /// - Parameters:
    ///   - file: The caller's file, for messages.
    ///   - line: The caller's line.
    ///   - body: Reads and writes.
    /// - Returns: What `body` returned in the run that was committed.
    /// - Throws: As ``withTransaction(file:line:_:)``; nothing has changed.
    @discardableResult
    public nonisolated(nonsending) static func run<R>(
        file: StaticString = #fileID,
        line: UInt = #line,
        _ body: (inout StateTransaction) throws -> R
    ) async throws -> R {
        var patience = StalePatience()
        while true {
            var run = try TransactionRun(&patience, TransactionCaller(file, line), body)
            for entry in run.writtenInKeyspace { await entry.turn.take() }
            let commit = try run.begin(commitsOnCaller: false) { _ in }
            await commit?.wait()
            if let done = try run.end(commit) { return done }
        }
    }
}
