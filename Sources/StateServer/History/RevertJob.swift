import StateEngine

/// STATE.REVERT: reads the past state of the keys, then commits the differences in one commit.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class RevertJob: HistoryJob, @unchecked Sendable {
    private let connection: Connection
    let control: JobControl
    private let past: PastState
    private let isDryRun: Bool

    init(_ past: PastState, isDryRun: Bool, for connection: Connection) {
        self.past = past
        self.isDryRun = isDryRun
        self.connection = connection
        control = JobControl(for: connection)
    }

    var byteCount: Int { past.readByteCount }

    var meanwhileByteCount: Int { past.meanwhileByteCount }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try past.readSlice(of: history)
    }

    func finish(_ failure: StateError?, in server: Server) {
        server.keyspace.withCore { core in
            // If the client has left, nothing is changed.
            guard !connection.isClosed else { return past.endTracking(in: core) }
            // Like any write it waits until there is room; meanwhile it tracks changes.
            let isFull =
                core.pending.byteCount >= server.services.settings.options.limits.queueByteCount
            guard failure != nil || control.isCancelled || !isFull else {
                return server.history.finishLater(self)
            }
            past.endTracking(in: core)
            connection.inbound.awaitsLateReply = false
            server.services.gate.answer(connection, core) { (context) throws(StateError) in
                try server.requireMemory(control)
                if let failure { throw failure }
                try server.dispatcher.history.revert(past, isDryRun: isDryRun, &context)
            }
        }
    }
}
