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
/// The body reads and writes in `tx` only. It runs again where a value that it read was changed meanwhile, so it only
/// computes. Who is told of one of the changes reads the others too.
///
/// - Returns: What `body` returned, of the run that was committed.
/// - Throws: What `body` threw; ``StateError/Code/mixedKeyspaces`` where the containers are not all in memory, or all of one
///   keyspace; ``StateError/Code/tooBig`` where they are more than ``StateTransaction/limit``; else why it was refused. Nothing has changed.
/// - Complexity: One sync for all of it.
@discardableResult
public func withTransaction<R>(
    _ body: (inout StateTransaction) throws -> R
) throws -> R {
    var patience = StalePatience()
    while true {
        var run = try TransactionRun(&patience, body)
        run.checkMayWait()
        let commit = try run.begin(commitsOnCaller: true) { $0.take() }
        run.wait(for: commit)
        if let done = try run.end(commit) { return done }
    }
}
