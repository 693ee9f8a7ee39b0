import StateEngine

/// A command that is answered from the history: its connection runs no other command meanwhile.
protocol ConnectionJob: HistoryJob {
    var connection: Connection { get }

    /// Writes the reply to the end of the connection's output.
    func writeReply(_ context: inout CommandContext) throws(StateError)

    /// Releases what was retained in the keyspace; called if no reply is written.
    func release(_ core: KeyspaceCore)
}

extension ConnectionJob {
    var isBackground: Bool { false }

    func release(_ core: KeyspaceCore) {}

    func finish(_ failure: StateError?, in server: Server) {
        server.keyspace.withCore { core in
            guard !connection.isClosed else { return release(core) }
            connection.inbound.awaitsLateReply = false
            server.services.gate.answer(connection, core) { (context) throws(StateError) in
                do throws(StateError) {
                    try server.requireMemory(control)
                    if let failure { throw failure }
                    try server.services.access.requireSame(connection)
                } catch {
                    release(core)
                    throw error
                }
                try writeReply(&context)
            }
        }
    }
}
