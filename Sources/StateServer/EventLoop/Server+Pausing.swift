import StateEngine
import StateWire

/// Connections that are not read from until what they wait for has come.
extension Server {
    func pause(_ connection: Connection, _ reason: Inbound.Pause) {
        guard connection.inbound.pause == nil else { return }
        connection.inbound.pause = reason
        if reason == .memoryIsFull { expectStalls() }
        if reason == .turnIsOver {
            unfinished.items.append(.input(connection))
        } else {
            registry.addPaused(connection)
            if reason == .filesAreEdited { scheduleFiles() }
        }
        updateInterest(connection)
    }

    /// Whether what a paused connection waits for has come.
    private func mayGoOn(_ connection: Connection, uncommitted: Int) -> Bool {
        switch connection.inbound.pause {
        case .queueIsFull: uncommitted < options.limits.queueByteCount
        case .outputIsFull: connection.outbound.waitingByteCount <= options.outputByteCount / 2
        case .repliesAreHeld: connection.outbound.held.isEmpty
        case .replyIsLate: !connection.inbound.awaitsLateReply
        case .filesAreEdited: connection.inbound.awaitedFiles?.areKnown ?? true
        // It stands in another list.
        case .turnIsOver: false
        case .memoryIsFull: !registry.memory.mustWait(connection)
        case nil: true
        }
    }

    /// Whether a paused connection may go on: what it waited for may have left with the last flush.
    var canResume: Bool {
        let uncommitted = keyspace.withCore { $0.pending.byteCount }
        return registry.hasPaused(where: { mayGoOn($0, uncommitted: uncommitted) })
    }

    func resumePaused() {
        let uncommitted = keyspace.withCore { $0.pending.byteCount }
        for connection in registry.takePaused(where: { mayGoOn($0, uncommitted: uncommitted) }) {
            guard !connection.inbound.bytes.isEmpty else {
                resume(connection)
                continue
            }
            // There may be many of them.
            connection.inbound.pause = .turnIsOver
            unfinished.items.append(.input(connection))
        }
    }

    /// Reads from a connection again, and carries out what has come in already.
    func resume(_ connection: Connection) {
        connection.inbound.pause = nil
        // Also if nothing has come in: the parser gives back what the last command needed.
        processInput(of: connection)
        if !connection.isClosed { updateInterest(connection) }
    }

    func updateInterest(_ connection: Connection) {
        // One may have ended to make room for another; its descriptor may be another's.
        guard !connection.isClosed else { return }
        var interest: UInt32 = 0
        if connection.inbound.pause == nil, !connection.isEnding { interest |= Poller.readableOnce }
        if !connection.outbound.bytes.isEmpty { interest |= Poller.writableOnce }
        guard interest != connection.interest else { return }
        connection.interest = interest
        let token = Token.make(Token.connection, connection.number)
        poller.modify(connection.descriptor, interest, token: token)
    }
}
