import CLinux
import Glibc
import StateEngine
import StateWire

/// Clients coming, sending, and going.
extension Server {
    /// Bytes that one connection may bring in a turn.
    private static let receiveByteCount = 64 << 10

    // MARK: Coming

    func accept(from listener: Int32) {
        for _ in 0..<64 {
            let descriptor = clinux_accept(listener)
            guard descriptor >= 0 else {
                if errno == EMFILE || errno == ENFILE { pauseListeners() }
                if errno == EINTR || errno == ECONNABORTED { continue }
                return
            }
            guard registry.count < options.clientCount else {
                let limit = "max number of clients reached: \(options.clientCount)"
                refuse(descriptor, StateError(.limit, limit))
                continue
            }
            let connection = Connection(
                descriptor: descriptor,
                number: registry.takeNumber(),
                limits: options.frameLimits,
                subjects: &registry.subjects,
                accounts: &accounts,
                at: dispatcher.now
            )
            do throws(StateError) {
                try keyspace.withCore { (core) throws(StateError) in
                    try dispatcher.checkConnections(of: connection.peer.uid, core)
                }
            } catch {
                accounts.leave(connection.account)
                refuse(descriptor, error)
                continue
            }
            let token = Token.make(Token.connection, connection.number)
            guard poller.add(descriptor, connection.interest, token: token) else {
                accounts.leave(connection.account)
                close(descriptor)
                continue
            }
            registry.add(connection)
        }
    }

    private func refuse(_ descriptor: Int32, _ error: StateError) {
        var reply = ByteBuffer()
        reply.writeError(error)
        let bytes = reply.bytes
        _ = send(
            descriptor,
            bytes.baseAddress,
            bytes.count,
            Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        )
        close(descriptor)
    }

    /// A listener that cannot be accepted from would be told as ready for ever.
    private func pauseListeners() {
        options.log(.warning, "no more file descriptors: new clients wait until others leave")
        isOutOfDescriptors = true
        for listener in listeners { poller.remove(listener) }
    }

    // MARK: Sending commands

    /// Reads once and carries out what came.
    ///
    /// - Parameters:
    ///   - connection: A connection of which an event says that there is something to read.
    ///   - hasEnded: Whether behind it stands the end of the stream.
    func receive(_ connection: Connection, hasEnded: Bool) {
        guard connection.pause == nil, !connection.isEnding else { return }
        let isDrained =
            connection.input.isEmpty ? receiveFresh(connection) : receiveMore(connection)
        guard hasEnded || !isDrained else { return }
        guard connection.pause == nil, !connection.isEnding, !connection.isClosed else { return }
        // There is more, of which no event will tell by itself: epoll looks again.
        let token = Token.make(Token.connection, connection.number)
        poller.modify(connection.descriptor, connection.interest, token: token)
    }

    /// Reads where no command is unfinished; returns whether all that was there was read.
    private func receiveFresh(_ connection: Connection) -> Bool {
        scratch.removeAll()
        let received = connection.receive(into: &scratch, Server.receiveByteCount)
        guard checkReceived(received, connection) else { return true }
        let before = connection.unfinishedByteCount
        let taken = process(scratch.bytes, of: connection)
        let isDrained = scratch.count < Server.receiveByteCount
        connection.input.append(scratch.bytes.slice(taken, scratch.count))
        countInput(connection.unfinishedByteCount - before)
        return isDrained
    }

    /// The same behind what there is of a command.
    private func receiveMore(_ connection: Connection) -> Bool {
        let missing = connection.parser.expectedByteCount - connection.input.count
        let wanted = min(max(missing, Server.receiveByteCount), 1 << 20)
        let received = connection.receive(into: &connection.input, wanted)
        guard checkReceived(received, connection), case .bytes(let count) = received else {
            return true
        }
        countInput(count)
        processInput(of: connection)
        return count < wanted
    }

    /// Whether bytes came; the end of the stream lets what was accepted be answered first.
    private func checkReceived(_ received: Connection.Received, _ connection: Connection) -> Bool {
        switch received {
        case .bytes: return true
        case .nothing: return false
        case .end:
            connection.isEnding = true
            flushes.add(connection)
            return false
        }
    }

    func processInput(of connection: Connection) {
        guard !connection.isClosed else { return }
        let before = connection.unfinishedByteCount
        let taken = process(connection.input.bytes, of: connection)
        connection.input.removeFirst(taken)
        connection.input.shrink(to: 0)
        countInput(connection.unfinishedByteCount - before)
    }

    /// Carries out the commands at the start of `bytes`.
    ///
    /// - Returns: How many bytes were taken.
    private func process(_ bytes: Bytes, of connection: Connection) -> Int {
        var taken = 0
        var weight = 0
        keyspace.withCore { core in
            while connection.pause == nil, !connection.isEnding {
                let rest = bytes.slice(taken, bytes.count)
                let step: FrameParser.Step
                do throws(WireError) {
                    step = try connection.parser.next(rest)
                } catch {
                    refuseStream(error, connection, core)
                    return
                }
                switch step {
                case .more: return
                case .skip(let count): taken += count
                case .refused(let error): answer(error, connection, core)
                case .frame(let arguments, let byteCount):
                    let raw = rest.slice(0, byteCount)
                    switch dispatcher.perform(arguments, raw: raw, for: connection, in: core) {
                    case .done:
                        taken += byteCount
                        if connection.isReadingHistory { pause(connection, .readsHistory) }
                    case .wait(let reason): pause(connection, reason)
                    }
                    if connection.waitingByteCount > options.outputByteCount {
                        pause(connection, .outputIsFull)
                    }
                    weight += dispatcher.lastWeight
                    if weight >= 64 {
                        weight = 0
                        if isSliceOver { pause(connection, .turnIsOver) }
                    }
                }
            }
        }
        return taken
    }

    private var isSliceOver: Bool {
        clinux_monotonic_nanoseconds() + dispatcher.owedNanoseconds >= sliceEnd
    }

    private func answer(_ error: WireError, _ connection: Connection, _ core: KeyspaceCore) {
        let start = connection.output.count
        core.observedRevision = 0
        dispatcher.refuseTransaction(of: connection)
        connection.output.writeError(error.answer)
        dispatcher.hold(from: start, connection, core)
    }

    /// The bytes are no commands: one answer, then the connection ends.
    private func refuseStream(_ error: WireError, _ connection: Connection, _ core: KeyspaceCore) {
        answer(error, connection, core)
        connection.isEnding = true
    }

    /// Counts unfinished input; beyond the limit the connection with the most of it goes.
    private func countInput(_ byteCount: Int) {
        inputByteCount += byteCount
        while inputByteCount > options.inputByteCount {
            let largest = registry.connections.max {
                $0.unfinishedByteCount < $1.unfinishedByteCount
            }
            guard let largest, largest.unfinishedByteCount > 0 else { return }
            let sentence = "unfinished input of all clients is over \(options.inputByteCount) bytes"
            options.log(
                .warning,
                "client \(largest.number) (pid \(largest.peer.pid)) is let go: \(sentence)"
            )
            largest.output.writeError(StateError(.limit, sentence))
            _ = largest.flush()
            end(largest)
        }
    }

    // MARK: Being sent to

    func flush(_ connection: Connection) {
        guard !connection.isClosed else { return }
        guard !connection.isLetGo else {
            noteLetGo(connection)
            end(connection)
            return
        }
        guard connection.flush() else {
            end(connection)
            return
        }
        if connection.hasMoreToSend, !connection.isListedForSending {
            connection.isListedForSending = true
            unfinished.append(.output(connection))
        }
        if connection.isEnding, connection.output.isEmpty, connection.held.isEmpty,
            !connection.isReadingHistory
        {
            end(connection)
            return
        }
        updateInterest(connection)
    }

    private func noteLetGo(_ connection: Connection) {
        registry.letGoCount += 1
        options.log(
            .warning,
            "client \(connection.number) (pid \(connection.peer.pid)) is let go: it does not read its "
                + "messages, of which \(connection.messageByteCount) bytes wait; the limit is "
                + "\(options.outputByteCount)"
        )
    }

    // MARK: Going

    func end(_ connection: Connection) {
        guard !connection.isClosed else { return }
        connection.isClosed = true
        registry.remove(connection)
        accounts.leave(connection.account)
        inputByteCount -= connection.unfinishedByteCount
        close(connection.descriptor)
        keyspace.withCore { core in
            dispatcher.endWatches(connection, core)
            dispatcher.channels.unsubscribeAll(connection, core)
            dispatcher.unblock(connection, core)
            dispatcher.endHandlers(connection)
            dispatcher.endListing(of: connection, core)
            if let cause = connection.cause { core.release(cause) }
        }
        if isOutOfDescriptors {
            isOutOfDescriptors = false
            for listener in listeners { watchListener(listener) }
        }
    }
}
