import StateEngine
import StateWire

/// Connections that are not read until a condition is met.
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

    /// Whether the condition of a paused connection is met.
    private func mayGoOn(_ connection: Connection, uncommitted: Int) -> Bool {
        switch connection.inbound.pause {
        case .queueIsFull: uncommitted < options.limits.queueByteCount
        case .outputIsFull: connection.outbound.waitingByteCount <= options.outputByteCount / 2
        case .repliesAreHeld: connection.outbound.held.isEmpty
        case .replyIsLate: !connection.inbound.awaitsLateReply
        case .filesAreEdited: connection.inbound.awaitedFiles?.areKnown ?? true
        // Another list has it.
        case .turnIsOver: false
        case .memoryIsFull: !registry.memory.mustWait(connection)
        case nil: true
        }
    }

    /// Whether a paused connection may continue: the last flush may have sent what it waited for.
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
            // There may be many connections, so each continues in its own slice.
            connection.inbound.pause = .turnIsOver
            unfinished.items.append(.input(connection))
        }
    }

    /// Reads from a connection again, and runs the commands that arrived meanwhile.
    func resume(_ connection: Connection) {
        connection.inbound.pause = nil
        // Also without input: the parser frees the memory of the last command.
        processInput(of: connection)
        if !connection.isClosed { updateInterest(connection) }
    }

    func updateInterest(_ connection: Connection) {
        // The connection may have ended to make room; its descriptor may have a new owner.
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
