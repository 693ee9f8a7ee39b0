import StateEngine

/// Changes several containers in one step: all or none, for threads, listeners and storage.
///
/// ```swift
/// try withTransaction { tx in
///     tx[from] -= 10
///     tx[to] += 10
/// }
/// ```
///
/// `body` must read and write only through `tx`: using a container in another way, or another
/// transaction, ends the process with a message that names both keys and the line. It runs again if
/// a value that it read has changed meanwhile, so it must have no side effects. A listener that
/// gets one of the changes reads the others too.
///
/// - Parameters:
///   - file: The caller's file, for that message.
///   - line: The caller's line.
///   - body: Reads and writes.
/// - Returns: What `body` returned in the run that was committed.
/// - Throws: What `body` threw. ``StateError/Code/mixedKeyspaces`` if the containers are not all in
///   memory or all in one keyspace. ``StateError/Code/tooBig`` if there are more than
///   ``StateTransaction/limit``. Otherwise why the changes were refused. Nothing has changed.
/// - Complexity: One sync for all changes.
@discardableResult
public func withTransaction<R>(
    file: StaticString = #fileID,
    line: UInt = #line,
    _ body: (inout StateTransaction) throws -> R
) throws -> R {
    var patience = StalePatience()
    while true {
        var run = try TransactionRun(&patience, TransactionCaller(file, line), body)
        run.checkMayWait()
        let commit = try run.begin(commitsOnCaller: true) { $0.take() }
        run.wait(for: commit)
        if let done = try run.end(commit) { return done }
    }
}

/// The same in a task, which waits without blocking its thread.
///
/// If the task is cancelled, the transaction is committed all the same.
///
/// - Parameters:
///   - file: The caller's file, for messages.
///   - line: The caller's line.
///   - body: Reads and writes.
/// - Returns: What `body` returned in the run that was committed.
/// - Throws: As the other form; nothing has changed.
@discardableResult
public nonisolated(nonsending) func withTransaction<R>(
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
