import CLinux
import StateEngine
import StateWire

/// Limits of all clients together, and who is disconnected above them.
extension Server {
    // MARK: Memory

    /// - Complexity: O(*n*) in the users and in the connections of one, for each ended connection.
    func refuseInput() {
        let memory = registry.memory
        while memory.inputByteCount > options.inputByteCount {
            guard
                let connection = memory.greediest(by: \.inputByteCount)?
                    .greediest(by: \.share.inputByteCount)
            else { return }
            letGo(
                connection,
                .input,
                "the unfinished input of all clients is above limits.inputBytes, "
                    + "\(options.inputByteCount) bytes"
            )
        }
    }

    func makeRoom() {
        let memory = registry.memory
        while memory.byteCount > memory.byteLimit {
            guard let account = memory.greediest(by: \.byteCount) else { return }
            if hasTrimmed(account) { continue }
            let connection = account.greediest(by: \.share.byteCount)
            if services.channels.endSubscribers(
                of: account,
                ifBehindByMoreThan: connection?.share.byteCount ?? 0
            ) {
                continue
            }
            guard let connection else { return }
            makeRoom(from: connection)
        }
    }

    /// Frees the unused memory of the buffers of a user's connections.
    ///
    /// - Returns: Whether there was any.
    private func hasTrimmed(_ account: ClientMemory.Account) -> Bool {
        let before = account.byteCount
        for connection in account.connections.values
        where connection.outbound.bytes.isEmpty && connection.share.byteCount > 0 {
            connection.outbound.bytes.shrink(to: 0)
            registry.memory.count(connection)
        }
        return account.byteCount < before
    }

    /// Refuses the command of a connection if the memory is for its reply; otherwise ends the
    /// connection.
    private func makeRoom(from connection: Connection) {
        let sentence = memorySentence
        let reading = connection.inbound.jobs.first { !$0.isBackground && !$0.control.isCancelled }
        guard let reading, reading.control.byteCount > connection.share.byteCount / 2 else {
            return letGo(connection, .memory, sentence)
        }
        registry.memory.refusedCount += 1
        noteLetGo(connection, .memory, "got an error instead of a reply", sentence)
        reading.control.cancel()
        history.thread?.dropCancelled()
        registry.memory.count(connection)
    }

    private var memorySentence: String {
        "the memory of all clients is above limits.memoryBytes, \(registry.memory.byteLimit) "
            + "bytes, and this client has the most"
    }

    /// Refuses the reply of a job that was ended to make room.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the limit.
    func requireMemory(_ control: JobControl) throws(StateError) {
        guard control.isCancelled else { return }
        throw StateError(.limit, "\(memorySentence); ask for less at once, or try later")
    }

    // MARK: Clients that do not read while others wait

    private static let stallMilliseconds: Int64 = 5_000

    /// Plans a check for clients that hold memory and do not read, because others wait for memory.
    @inline(never)  // Rare.
    func expectStalls() {
        registry.memory.isAwaited = true
        if !timers.isSet(.stalls) { beginStallCheck() }
    }

    private func beginStallCheck() {
        timers.set(.stalls, at: SystemClock.monotonicMilliseconds() + Server.stallMilliseconds)
        for connection in registry.connections {
            connection.outbound.seenSentByteCount = connection.outbound.sentByteCount
        }
    }

    /// Ends the largest connection that has read nothing for a while, if others wait for memory.
    func endStalls() {
        let memory = registry.memory
        // Watches that wait report it again in each turn.
        let isAwaited =
            memory.isAwaited || registry.hasPaused(where: { $0.inbound.pause == .memoryIsFull })
        memory.isAwaited = false
        guard isAwaited else { return }
        let stalled = memory.greediest(by: \.byteCount)?.greediest { connection in
            let hasRead = connection.outbound.sentByteCount != connection.outbound.seenSentByteCount
            return hasRead || connection.outbound.bytes.isEmpty ? 0 : connection.share.byteCount
        }
        if let stalled {
            letGo(
                stalled,
                .memory,
                "other clients wait for memory, and this client has the most and does not read"
            )
        }
        // Repeat as long as somebody waits for more.
        beginStallCheck()
    }

    // MARK: Incomplete commands

    /// Sets the timer for the connection whose incomplete command began first.
    func scheduleFrames() {
        let isLimited = options.frameMilliseconds > 0
        let since = isLimited ? unfinished.frames.earliest?.since : nil
        timers.set(.frames, at: since.map { $0 + options.frameMilliseconds })
    }

    /// Ends the connections whose time has passed.
    func endFrames() {
        let start = SystemClock.monotonicMilliseconds() - options.frameMilliseconds
        while let place = unfinished.frames.earliest, place.since <= start {
            unfinished.frames.end(place.connection)
            letGo(
                place.connection,
                .frame,
                "a command was not complete within limits.frameTimeout, "
                    + "\(options.frameMilliseconds) ms"
            )
        }
    }

    // MARK: Disconnecting

    /// Ends a connection with an error, if it can still be sent.
    func letGo(_ connection: Connection, _ reason: LetGoReason, _ sentence: String) {
        registry.memory.refusedCount += reason == .frame ? 0 : 1
        noteLetGo(connection, reason, "was disconnected", sentence)
        connection.outbound.bytes.writeError(StateError(.limit, sentence))
        _ = connection.flush()
        end(connection)
    }

    func noteLetGo(
        _ connection: Connection,
        _ reason: LetGoReason,
        _ what: String,
        _ sentence: String
    ) {
        let uid = connection.peer.uid
        services.gate.write(.init(subject: .letGo(reason), uid: uid), .warning) {
            let text =
                "client \(connection.number) (uid \(uid), pid \(connection.peer.pid)) "
                + "\(what): \(sentence)"
            return (text, connection.logFields)
        }
    }
}

/// Why a connection was ended.
package enum LetGoReason: Hashable {
    /// All clients have too much unfinished input.
    case input
    /// All clients take too much memory.
    case memory
    /// It does not read its messages.
    case messages
    /// It did not complete a command in time.
    case frame
}
