import StateEngine

/// A command that is answered from the history: its connection waits for it, and runs no other command meanwhile.
protocol ConnectionJob: HistoryJob {
    var connection: Connection { get }

    /// Writes the reply to the end of the connection's output.
    func writeReply(_ core: KeyspaceCore) throws(StateError)
}

extension ConnectionJob {
    func finish(_ failure: StateError?, in server: Server) {
        guard !connection.isClosed else { return }
        connection.isReadingHistory = false
        server.keyspace.withCore { core in
            server.dispatcher.answer(connection, core) { () throws(StateError) in
                if let failure { throw failure }
                try writeReply(core)
            }
        }
    }
}
