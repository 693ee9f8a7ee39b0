import CLinux
import StateEngine
import StateWire

/// Input and output of connections, and which of them are not read for now.
extension Server {
    /// The most bytes read from one connection in a turn.
    private static let receiveByteCount = 64 << 10
    /// After commands of so much weight the clock is checked: 16 SETs take about 30 µs.
    private static let weightBetweenLooks = 16

    // MARK: Input

    /// Reads once and runs the commands.
    ///
    /// - Parameters:
    ///   - connection: A connection whose event reports input.
    ///   - hasEnded: Whether the stream ends after it.
    func receive(_ connection: Connection, hasEnded: Bool) {
        guard connection.inbound.pause == nil, !connection.ending.isDue else { return }
        let isDrained =
            connection.inbound.bytes.isEmpty ? receiveFresh(connection) : receiveMore(connection)
        guard hasEnded || !isDrained else { return }
        guard connection.inbound.pause == nil, !connection.ending.isDue, !connection.isClosed else {
            return
        }
        // There is more, but no new event would come: make epoll check again.
        let token = Token.make(for: connection)
        poller.modify(connection.descriptor, connection.interest, token: token)
    }

    /// Reads if no command is incomplete.
    ///
    /// Returns whether all input was read.
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

    /// The same after the beginning of a command.
    private func receiveMore(_ connection: Connection) -> Bool {
        let missing = connection.inbound.parser.expectedByteCount - connection.inbound.bytes.count
        let limit = min(max(missing, Server.receiveByteCount), 1 << 20)
        let received = connection.receive(into: &connection.inbound.bytes, limit)
        guard checkReceived(received, connection), case .bytes(let count) = received else {
            return true
        }
        processInput(of: connection)
        return count < limit
    }

    /// Whether bytes arrived.
    ///
    /// At the end of the stream, accepted commands are still answered first.
    private func checkReceived(_ received: Connection.Received, _ connection: Connection) -> Bool {
        switch received {
        case .bytes: return true
        case .nothing: return false
        case .end:
            connection.ending.isDue = true
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

    /// Counts the memory of a connection after so many bytes of its input were executed.
    private func noteInput(of connection: Connection, taken: Int) {
        guard !connection.isClosed else { return }
        timeFrame(of: connection, isNew: taken > 0)
        // A small reply is counted when it is sent, at the end of the turn.
        let isPlain =
            connection.inbound.bytes.isEmpty && connection.share.inputByteCount == 0
            && connection.session.transaction == nil && connection.outbound.bytes.count < 64 << 10
        if !isPlain { count(connection) }
    }

    /// Starts the time of a connection with an incomplete command.
    ///
    /// `isNew` restarts it: this is another command than before.
    func timeFrame(of connection: Connection, isNew: Bool) {
        guard !connection.inbound.bytes.isEmpty, connection.inbound.pause == nil,
            !connection.ending.isDue,
            options.frameMilliseconds > 0
        else {
            if connection.places.frame != nil { unfinished.frames.end(connection) }
            return
        }
        unfinished.frames.begin(connection, isNew: isNew, at: SystemClock.monotonicMilliseconds())
        if !timers.isSet(.frames) { scheduleFrames() }
    }

    /// Runs the commands at the start of `bytes`.
    ///
    /// - Returns: How many bytes were taken.
    private func process(_ bytes: Bytes, of connection: Connection) -> Int {
        var (taken, looked, weight) = (0, 0, 0)
        keyspace.withCore { core in
            var context = CommandContext(connection, in: core, at: turn.time)
            while connection.inbound.pause == nil, !connection.ending.isDue {
                let rest = bytes.slice(taken, bytes.count)
                if taken > looked, !rest.isEmpty {
                    looked = taken + lookAhead(rest, of: connection, core)
                }
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
                    let waiting = core.pending.byteCount
                    switch dispatcher.perform(arguments, raw: raw, &context) {
                    case .done:
                        taken += byteCount
                        if core.pending.byteCount > waiting {
                            connection.share.account?.noteWritten(
                                core.pending.byteCount - waiting,
                                at: core.newestRevision
                            )
                        }
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

    private var isSliceOver: Bool { clinux_monotonic_nanoseconds() >= turn.sliceEnd }

    private func answer(_ error: WireError, _ connection: Connection, _ core: KeyspaceCore) {
        connection.session.transaction?.refuse()
        services.gate.answer(connection, core) { $0.output.writeError(error.answer) }
    }

    /// The bytes are not commands: sends an error and ends the connection.
    private func refuseStream(_ error: WireError, _ connection: Connection, _ core: KeyspaceCore) {
        answer(error, connection, core)
        connection.ending.isDue = true
    }

    // MARK: Output

    func flush(_ connection: Connection) {
        guard !connection.isClosed, !connection.ending.isLeaving else { return }
        guard !connection.ending.isKilled else { return leave(connection) }
        guard !connection.ending.isLetGo else {
            registry.counts.letGo += 1
            noteLetGo(
                connection,
                .messages,
                "was disconnected",
                connection.ending.isBehind
                    ? "its user's subscriptions take too long, and more messages wait for them than "
                        + "limits.outputBytes or limits.memoryBytes allow"
                    : "it does not read its messages: \(connection.outbound.messageByteCount) bytes "
                        + "wait, the limit is \(options.outputByteCount)"
            )
            leave(connection)
            return
        }
        guard connection.flush() else {
            // Commands that a client sent before it left still run, although nobody reads the
            // replies: also those that were not received yet.
            let mayRead =
                connection.inbound.pause == nil && !connection.ending.isDue && connection.hasHungUp
            guard mayRead || connection.inbound.pause == .turnIsOver else {
                return leave(connection)
            }
            connection.outbound.bytes.truncate(to: 0)
            updateInterest(connection)
            count(connection)
            return
        }
        if connection.outbound.hasMoreToSend, !connection.places.hasUnfinishedOutput {
            connection.places.hasUnfinishedOutput = true
            unfinished.items.append(.output(connection))
        }
        if connection.ending.isDue, connection.outbound.bytes.isEmpty,
            connection.outbound.held.isEmpty,
            !connection.inbound.awaitsLateReply
        {
            leave(connection)
            return
        }
        updateInterest(connection)
        if !connection.isCounted { count(connection) }
    }

    /// Counts a connection's memory.
    ///
    /// If all clients together have too much, the largest connection of the largest user is ended.
    ///
    /// Do not call this under the keyspace's lock: connections end.
    func count(_ connection: Connection) {
        let memory = registry.memory
        memory.count(connection)
        if memory.inputByteCount > options.inputByteCount { refuseInput() }
        if memory.byteCount > memory.byteLimit { makeRoom() }
    }

    // MARK: Pausing

    func pause(_ connection: Connection, _ reason: Inbound.Pause) {
        guard connection.inbound.pause == nil else { return }
        connection.inbound.pause = reason
        if reason == .memoryIsFull { expectStalls() }
        switch reason {
        case .turnIsOver: unfinished.items.append(.input(connection))
        // ``ReplyGate`` adds it with its reply.
        case .replyIsLate: break
        default: registry.addPaused(connection)
        }
        if reason == .filesAreEdited { scheduleFiles() }
        updateInterest(connection)
    }

    /// Whether the condition of a paused connection is met.
    ///
    /// Call this under the keyspace's lock.
    private func mayGoOn(_ connection: Connection) -> Bool {
        switch connection.inbound.pause {
        case .queueIsFull:
            !connection.mustWaitForDisk(options, core) && !options.mustWaitForFiles(core)
        case .outputIsFull: connection.outbound.waitingByteCount <= options.outputByteCount / 2
        case .repliesAreHeld: connection.outbound.held.isEmpty
        case .commitsAreOnTheirWay: !core.isBehind(connection.inbound.awaitedRevision)
        case .replyIsLate: !connection.inbound.awaitsLateReply
        case .filesAreEdited: connection.inbound.awaitedFiles?.areKnown ?? true
        // Another list has it.
        case .turnIsOver: false
        case .daemonStops: false
        case .memoryIsFull: !registry.memory.mustWait(connection)
        case .clientsArePaused: registry.pause == nil
        case nil: true
        }
    }

    /// Whether a paused connection may continue: the last flush may have sent what it waited for.
    var canResume: Bool {
        keyspace.withCore { _ in registry.hasPaused(where: mayGoOn) }
    }

    func resumePaused() {
        for connection in keyspace.withCore({ _ in registry.takePaused(where: mayGoOn) }) {
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
        if connection.inbound.pause == nil, !connection.ending.isDue {
            interest |= Poller.readableOnce
        }
        if !connection.outbound.bytes.isEmpty { interest |= Poller.writableOnce }
        guard interest != connection.interest else { return }
        connection.interest = interest
        let token = Token.make(for: connection)
        poller.modify(connection.descriptor, interest, token: token)
    }
}
