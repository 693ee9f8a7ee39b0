import CLinux
import StateEngine
import StateWire

/// What commands that write have in common.
extension Dispatcher {
    /// Makes what `body` changes one commit, or part of the transaction that is open.
    ///
    /// - Parameters:
    ///   - connection: Who writes.
    ///   - core: The keyspace, whose lock is held.
    ///   - receipt: Of the reply.
    ///   - wait: What the reply waits for.
    ///   - body: Makes the changes.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; nothing has changed then.
    func write<R>(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt,
        waitingFor wait: Receipt.Wait = .rules,
        _ body: (inout Receipt) throws(StateError) -> R
    ) throws(StateError) -> R {
        guard !isExecuting else { return try body(&receipt) }
        core.begin(cause(of: connection, core), at: now, by: restriction(connection, core))
        let result: R
        do throws(StateError) {
            result = try body(&receipt)
        } catch {
            core.rollBack()
            throw error
        }
        finish(connection, core, &receipt, waitingFor: wait)
        return result
    }

    /// Ends the transaction that is open; see ``write(_:_:_:waitingFor:_:)``.
    func finish(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt,
        waitingFor wait: Receipt.Wait
    ) {
        // A client's own watches are sent before the reply to what it wrote.
        let goesAtOnce = connection.watchers.isEmpty && !connection.isSubscribed
        core.finish(&receipt, waitingFor: wait, goesAtOnce: goesAtOnce)
        owedNanoseconds += core.takePublishingCost()
        takenByteCount = core.entries.putByteCount
        hasCommitted = true
    }

    /// Who a connection's commits are by; found out at its first write.
    func cause(of connection: Connection, _ core: KeyspaceCore) -> InternedCause {
        if let cause = connection.cause { return cause }
        let cause = core.retainCause(
            Cause(
                uid: connection.peer.uid,
                gid: connection.peer.gid,
                pid: connection.peer.pid,
                command: connection.peerCommand,
                client: String(decoding: connection.name, as: UTF8.self)
            )
        )
        connection.cause = cause
        return cause
    }

    /// Refuses a reply that has grown beyond its limit.
    func checkReply(_ byteCount: Int) throws(StateError) {
        guard byteCount > options.replyByteCount else { return }
        throw replyTooBig(options.replyByteCount)
    }
}
