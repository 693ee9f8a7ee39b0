import CLinux
import StateEngine
import StateWire

/// What clients may take together, and who pays when it is more.
extension Server {
    // MARK: Memory

    /// Takes over what a connection has now; where all have too much, the greediest user's greediest connection goes.
    ///
    /// Not under the keyspace's lock: connections end.
    func count(_ connection: Connection) {
        let memory = registry.memory
        memory.count(connection)
        if memory.inputByteCount > options.inputByteCount { refuseInput() }
        if memory.byteCount > memory.byteLimit { makeRoom() }
    }

    /// - Complexity: O(*n*) in the users and in the connections of one, for each connection that goes.
    private func refuseInput() {
        let memory = registry.memory
        while memory.inputByteCount > options.inputByteCount {
            guard
                let connection = memory.greediest(by: \.inputByteCount)?
                    .greediest(by: \.share.inputByteCount)
            else { return }
            letGo(
                connection,
                .input,
                "unfinished input of all clients is over \(options.inputByteCount) bytes"
            )
        }
    }

    private func makeRoom() {
        let memory = registry.memory
        while memory.byteCount > memory.byteLimit {
            guard let account = memory.greediest(by: \.byteCount) else { return }
            if hasTrimmed(account) { continue }
            guard let connection = account.greediest(by: \.share.byteCount) else { return }
            makeRoom(from: connection)
        }
    }

    /// Gives back what the buffers of a user's connections keep for later.
    ///
    /// - Returns: Whether that was anything.
    private func hasTrimmed(_ account: ClientMemory.Account) -> Bool {
        let before = account.byteCount
        for connection in account.connections.values
        where connection.outbound.bytes.isEmpty && connection.share.byteCount > 0 {
            connection.outbound.bytes.shrink(to: 0)
            registry.memory.count(connection)
        }
        return account.byteCount < before
    }

    /// What is read for a command is refused alone; anything else ends the connection.
    private func makeRoom(from connection: Connection) {
        let sentence = memorySentence
        let reading = connection.inbound.jobs.first { !$0.isBackground && !$0.control.isCancelled }
        guard let reading, reading.control.byteCount > connection.share.byteCount / 2 else {
            return letGo(connection, .memory, sentence)
        }
        registry.memory.refusedCount += 1
        noteLetGo(connection, .memory, "has a reply refused", sentence)
        reading.control.cancel()
        history.thread?.dropCancelled()
        registry.memory.count(connection)
    }

    private var memorySentence: String {
        "clients take more memory than limits.memoryBytes, \(registry.memory.byteLimit) bytes, allow, and "
            + "this one takes most"
    }

    /// Refuses the reply of a job that was ended to make room.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the limit.
    func requireMemory(_ control: JobControl) throws(StateError) {
        guard control.isCancelled else { return }
        throw StateError(.limit, "\(memorySentence): ask for less at once, or later")
    }

    // MARK: Clients that do not read while others wait

    private static let stallMilliseconds: Int64 = 5_000

    /// Somebody waits for memory: whoever holds it and does not read is looked for some time later.
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

    /// Lets the greediest go of those that have read nothing for a while, if somebody waits for memory.
    func endStalls() {
        let memory = registry.memory
        // Watches that wait say so again in each turn.
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
                "others wait for memory, of which it holds most, and it does not read"
            )
        }
        // As long as somebody waits for more.
        beginStallCheck()
    }

    // MARK: Commands that are not finished

    /// Has a connection's time run if it has begun a command and not ended it; anew if what is there now was begun later than what
    /// was there before.
    func timeFrame(of connection: Connection, isNew: Bool) {
        guard !connection.inbound.bytes.isEmpty, connection.inbound.pause == nil,
            !connection.isEnding,
            options.frameMilliseconds > 0
        else {
            if connection.places.frame != nil { unfinished.frames.end(connection) }
            return
        }
        unfinished.frames.begin(connection, isNew: isNew, at: SystemClock.monotonicMilliseconds())
        if !timers.isSet(.frames) { scheduleFrames() }
    }

    /// Plans when the time of the connection that has waited longest is over; it may have ended its command by then.
    func scheduleFrames() {
        let isLimited = options.frameMilliseconds > 0
        let since = isLimited ? unfinished.frames.earliest?.since : nil
        timers.set(.frames, at: since.map { $0 + options.frameMilliseconds })
    }

    /// Ends the connections whose time is over.
    func endFrames() {
        let start = SystemClock.monotonicMilliseconds() - options.frameMilliseconds
        while let place = unfinished.frames.earliest, place.since <= start {
            unfinished.frames.end(place.connection)
            letGo(
                place.connection,
                .frame,
                "a command was begun and not ended within limits.frameTimeout, "
                    + "\(options.frameMilliseconds) ms"
            )
        }
    }

    // MARK: Going

    /// Ends a connection with an error, as far as it still takes one.
    func letGo(_ connection: Connection, _ reason: LetGoReason, _ sentence: String) {
        registry.memory.refusedCount += reason == .frame ? 0 : 1
        noteLetGo(connection, reason, "is let go", sentence)
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
            "client \(connection.number) (uid \(uid), pid \(connection.peer.pid)) \(what): \(sentence)"
        }
    }
}

/// Why a connection was ended.
package enum LetGoReason: Hashable {
    /// There is too much unfinished input.
    case input
    /// Clients take too much memory.
    case memory
    /// It does not read its messages.
    case messages
    /// It does not end what it has begun to send.
    case frame
}
