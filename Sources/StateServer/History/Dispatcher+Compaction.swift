import StateEngine
import StateWire

/// STATE.COMPACT: the commit thread does it, and the connection waits.
///
/// It belongs to the loop thread, on which the answer is handed out: the proof of `@unchecked Sendable`.
final class CompactionWait: @unchecked Sendable {
    let connection: Connection
    let revision: Int64?
    let shrinks: Bool
    fileprivate weak var server: Server?

    init(_ connection: Connection, to revision: Int64?, shrinks: Bool) {
        self.connection = connection
        self.revision = revision
        self.shrinks = shrinks
    }
}

extension Dispatcher {
    func stateCompact(
        to revision: Int64?,
        shrinks: Bool,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard !isExecuting else {
            throw StateError(.err, "the history cannot be compacted inside of MULTI")
        }
        try requireAdmin(connection, "STATE.COMPACT", core)
        try compact(CompactionWait(connection, to: revision, shrinks: shrinks), core)
        connection.awaitsLateReply = true
    }
}

extension Server {
    /// Has the commit thread compact, and answers when it has.
    func compact(_ wait: CompactionWait, _ core: KeyspaceCore) throws(StateError) {
        wait.server = self
        try keyspace.compact(to: wait.revision, shrinks: wait.shrinks, in: core) { result in
            wait.server?.finish(wait, result)
        }
    }

    fileprivate func finish(_ wait: CompactionWait, _ result: Result<CompactionReply, StateError>) {
        let connection = wait.connection
        guard !connection.isClosed else { return }
        connection.awaitsLateReply = false
        keyspace.withCore { core in
            dispatcher.answer(connection, core) { (_) throws(StateError) in
                let reply = try result.get()
                connection.output.writeMap(reply.freedByteCount == nil ? 1 : 2, connection.version)
                connection.output.writeField("compacted", reply.compacted)
                if let count = reply.freedByteCount { connection.output.writeField("freed", count) }
            }
        }
    }
}
