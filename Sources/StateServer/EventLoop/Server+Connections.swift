import CLinux
import Glibc
import StateEngine
import StateWire

/// Clients sending, being sent to, and going.
extension Server {
    /// Bytes that one connection may bring in a turn.
    private static let receiveByteCount = 64 << 10
    /// After commands of so much weight it is looked whether the slice is over: 16 SETs take about 30 µs.
    private static let weightBetweenLooks = 16

    // MARK: Sending commands

    /// Reads once and carries out what came.
    ///
    /// - Parameters:
    ///   - connection: A connection of which an event says that there is something to read.
    ///   - hasEnded: Whether behind it stands the end of the stream.
    func receive(_ connection: Connection, hasEnded: Bool) {
        guard connection.inbound.pause == nil, !connection.isEnding else { return }
        let isDrained =
            connection.inbound.bytes.isEmpty ? receiveFresh(connection) : receiveMore(connection)
        guard hasEnded || !isDrained else { return }
        guard connection.inbound.pause == nil, !connection.isEnding, !connection.isClosed else {
            return
        }
        // There is more, of which no event will tell by itself: epoll looks again.
        let token = Token.make(Token.connection, connection.number)
        poller.modify(connection.descriptor, connection.interest, token: token)
    }

    /// Reads where no command is unfinished; returns whether all that was there was read.
    private func receiveFresh(_ connection: Connection) -> Bool {
        scratch.removeAll()
        let received = connection.receive(into: &scratch, Server.receiveByteCount)
        guard checkReceived(received, connection) else { return true }
        let taken = process(scratch.bytes, of: connection)
        let isDrained = scratch.count < Server.receiveByteCount
        connection.inbound.bytes.append(scratch.bytes.slice(taken, scratch.count))
        noteInput(of: connection, taken: taken)
        return isDrained
    }

    /// The same behind what there is of a command.
    private func receiveMore(_ connection: Connection) -> Bool {
        let missing = connection.inbound.parser.expectedByteCount - connection.inbound.bytes.count
        let wanted = min(max(missing, Server.receiveByteCount), 1 << 20)
        let received = connection.receive(into: &connection.inbound.bytes, wanted)
        guard checkReceived(received, connection), case .bytes(let count) = received else {
            return true
        }
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
        let taken = process(connection.inbound.bytes.bytes, of: connection)
        connection.inbound.bytes.removeFirst(taken)
        connection.inbound.bytes.shrink(to: 0)
        noteInput(of: connection, taken: taken)
    }

    /// Counts what a connection has now that so many bytes of it were carried out.
    private func noteInput(of connection: Connection, taken: Int) {
        guard !connection.isClosed else { return }
        timeFrame(of: connection, isNew: taken > 0)
        // A small reply is counted when it is sent, at the end of the turn.
        let isPlain =
            connection.inbound.bytes.isEmpty && connection.share.inputByteCount == 0
            && connection.session.transaction == nil && connection.outbound.bytes.count < 64 << 10
        if !isPlain { count(connection) }
    }

    /// Carries out the commands at the start of `bytes`.
    ///
    /// - Returns: How many bytes were taken.
    private func process(_ bytes: Bytes, of connection: Connection) -> Int {
        var taken = 0
        var weight = 0
        keyspace.withCore { core in
            var context = CommandContext(connection, in: core, at: turn.time)
            while connection.inbound.pause == nil, !connection.isEnding {
                let rest = bytes.slice(taken, bytes.count)
                let step: FrameParser.Step
                do throws(WireError) {
                    step = try connection.inbound.parser.next(rest)
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
                    switch dispatcher.perform(arguments, raw: raw, &context) {
                    case .done:
                        taken += byteCount
                        turn.note(&context)
                        if connection.inbound.awaitsLateReply { pause(connection, .replyIsLate) }
                    case .wait(let reason): pause(connection, reason)
                    }
                    if connection.outbound.waitingByteCount > options.outputByteCount {
                        pause(connection, .outputIsFull)
                    }
                    weight += dispatcher.lastWeight
                    if weight >= Server.weightBetweenLooks {
                        weight = 0
                        if isSliceOver { pause(connection, .turnIsOver) }
                    }
                }
            }
        }
        return taken
    }

    private var isSliceOver: Bool {
        clinux_monotonic_nanoseconds() + turn.owedNanoseconds >= turn.sliceEnd
    }

    private func answer(_ error: WireError, _ connection: Connection, _ core: KeyspaceCore) {
        connection.session.transaction?.refuse()
        services.gate.answer(connection, core) { $0.output.writeError(error.answer) }
    }

    /// The bytes are no commands: one answer, then the connection ends.
    private func refuseStream(_ error: WireError, _ connection: Connection, _ core: KeyspaceCore) {
        answer(error, connection, core)
        connection.isEnding = true
    }

    // MARK: Being sent to

    func flush(_ connection: Connection) {
        guard !connection.isClosed else { return }
        guard !connection.isLetGo else {
            registry.letGoCount += 1
            noteLetGo(
                connection,
                .messages,
                "is let go",
                "it does not read its messages, of which \(connection.outbound.messageByteCount) bytes wait; the "
                    + "limit is \(options.outputByteCount)"
            )
            end(connection)
            return
        }
        guard connection.flush() else {
            // What a client sent before it left is carried out though nobody reads the replies.
            guard connection.inbound.pause == .turnIsOver else { return end(connection) }
            connection.outbound.bytes.truncate(to: 0)
            count(connection)
            return
        }
        if connection.outbound.hasMoreToSend, !connection.places.hasUnfinishedOutput {
            connection.places.hasUnfinishedOutput = true
            unfinished.items.append(.output(connection))
        }
        if connection.isEnding, connection.outbound.bytes.isEmpty, connection.outbound.held.isEmpty,
            !connection.inbound.awaitsLateReply
        {
            end(connection)
            return
        }
        updateInterest(connection)
        count(connection)
    }

    // MARK: Going

    func end(_ connection: Connection) {
        guard !connection.isClosed else { return }
        connection.isClosed = true
        registry.remove(connection)
        unfinished.frames.end(connection)
        history.endJobs(of: connection)
        close(connection.descriptor)
        keyspace.withCore { core in
            dispatcher.watches.end(connection, core)
            services.channels.unsubscribeAll(connection, core)
            dispatcher.changes.unblock(connection, core)
            dispatcher.handlers.end(connection)
            ListingCommand.end(of: connection, core)
            if let cause = connection.session.cause { core.release(cause) }
        }
        connection.releaseMemory()
        if timers.isSet(.acceptance) { acceptAgain() }
    }
}
