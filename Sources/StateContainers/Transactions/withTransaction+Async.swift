import StateEngine

/// Changes several containers in one step, for a task; see ``withTransaction(_:)``.
///
/// - Returns: What `body` returned, of the run that was committed.
/// - Throws: What `body` threw, or why it was refused; nothing has changed.
@discardableResult
public nonisolated(nonsending) func withTransaction<R>(
    _ body: (inout StateTransaction) throws -> R
) async throws -> R {
    while true {
        var run = try TransactionRun(body)
        for entry in run.writtenInKeyspace { await entry.turn.take() }
        let commit = try run.begin(lendsThread: false) { _ in }
        await commit?.wait()
        if let done = try run.end(commit) { return done }
    }
}
