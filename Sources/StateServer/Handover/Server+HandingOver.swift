import Glibc
import StateEngine
import StateWire

/// The end of a process whose connections the next one continues.
extension Server {
    /// How long clients wait at most, in milliseconds, before connections are handed over: for long
    /// commands of some, and for storage, without which this process cannot end either.
    private static let (workMilliseconds, storageMilliseconds): (Int64, Int64) = (1_000, 5_000)

    /// Hands the connections that can be continued to the service manager, after accepted commands
    /// were answered.
    ///
    /// A command that has not begun is not run: the next process runs it. A connection that cannot be
    /// continued stays.
    ///
    /// - Returns: Whether some were handed over.
    func handOver() -> Bool {
        guard let store = options.handOver else { return false }
        holdInput()
        drain()
        let (record, leaving) = keyspace.withCore { makeRecord($0) }
        guard !leaving.isEmpty,
            let packed = HandoverStream.pack(record.bytes, leaving.map(\.descriptor))
        else { return false }
        defer { packed.close() }
        guard store(packed.ends) else { return false }
        for number in packed.sessions.sorted() {
            // Its registration would live as long as the socket.
            poller.remove(leaving[number].descriptor)
            end(leaving[number])
        }
        options.log(
            .info,
            .connectionsHandedOver,
            "connections handed over to the next process: \(packed.sessions.count)"
        )
        return true
    }

    /// Runs no more commands, and reads none.
    private func holdInput() {
        unfinished.events.removeAll()
        unfinished.items.removeAll { work in
            switch work {
            case .arrivals, .events, .input: true
            case .leftovers, .listing, .messages, .output: false
            }
        }
        for connection in registry.connections where !connection.ending.isDue {
            connection.inbound.pause = .daemonStops
            updateInterest(connection)
        }
    }

    /// Commits and answers all accepted commands.
    private func drain() {
        let start = SystemClock.monotonicMilliseconds()
        keyspace.publish()
        settle()
        releaseKept()
        while true {
            services.waitingForChanges.expire(at: .max)
            answerBlocked()
            for connection in Array(registry.connections) { flush(connection) }
            let passed = SystemClock.monotonicMilliseconds() - start
            let isAwaited = registry.connections.contains { connection in
                guard !connection.ending.isDue, !connection.isAtRest else { return false }
                let isHeld = !connection.outbound.held.isEmpty
                return passed < (isHeld ? Server.storageMilliseconds : Server.workMilliseconds)
            }
            let hasMessages = unfinished.items.contains { work in
                if case .messages = work { passed < Server.workMilliseconds } else { false }
            }
            guard isAwaited || hasMessages else { return }
            takeStoppingTurn()
        }
    }

    /// One turn that reads no input.
    func takeStoppingTurn() {
        collectEvents(nanoseconds: unfinished.items.isEmpty ? 100_000_000 : 0)
        unfinished.events.removeAll(keepingCapacity: true)
        settle()
        goOnWithUnfinished()
        finishHistoryJobs()
        finishReload()
        keyspace.publish()
        releaseKept()
    }

    /// Whether messages for a connection may still be on their way.
    ///
    /// They end with this process. If the connection went on, its client could not learn of that.
    private func isOwedMessages(_ connection: Connection) -> Bool {
        connection.session.isSubscribed
            && unfinished.items.contains { work in
                guard case .messages(let outbox) = work, !outbox.isEmpty else { return false }
                return outbox.publisher != nil || outbox.account === connection.share.account
            }
    }

    /// The sessions to hand over, and their connections in the same order.
    private func makeRecord(_ core: KeyspaceCore) -> (HandoverRecord, [Connection]) {
        var record = HandoverRecord(
            epoch: core.epoch,
            durable: core.revisions.durable,
            lastNumber: registry.counts.accepted
        )
        var leaving: [Connection] = []
        var left = HandoverRecord.byteLimit
        for connection in registry.connections.sorted(by: { $0.number < $1.number })
        where connection.canBeContinued && !isOwedMessages(connection) {
            var writer = RecordWriter()
            SessionRecord(connection, core).write(to: &writer)
            guard writer.bytes.count <= left else { continue }
            left -= writer.bytes.count
            record.sessions.append(writer.bytes)
            leaving.append(connection)
        }
        return (record, leaving)
    }
}

extension Connection {
    /// Whether every command that began is answered, as far as the daemon can.
    fileprivate var isAtRest: Bool {
        outbound.held.isEmpty && !inbound.awaitsLateReply && inbound.listing == nil
            && inbound.blocked == nil
    }

    /// Whether the next process can continue it.
    ///
    /// A backup reads a snapshot of the database, which ends with this process. A monitor would miss
    /// no command, but it may be so far behind only because it does not read.
    fileprivate var canBeContinued: Bool {
        isAtRest && !isClosed && !ending.isDue && !ending.isLetGo && !ending.isKilled
            && !session.isMonitor && session.backup == nil && !inbound.parser.isSkipping
    }
}

extension SessionRecord {
    init(_ connection: Connection, _ core: KeyspaceCore) {
        let session = connection.session
        number = connection.number
        connectedAt = connection.connectedAt
        version = session.version
        (name, library) = (session.client.name, session.client.library)
        libraryVersion = session.client.libraryVersion
        silence = session.silence.number
        transaction = session.transaction.map {
            Queue(isRefused: $0.isRefused, frames: $0.frames())
        }
        watchedKeys = session.watchedKeys.map { watched in
            let restriction = core.restriction(of: connection.subject)
            let hasChanged = watched.absence?.hasChanged(for: restriction, in: core) ?? false
            return WatchedKey(key: watched.key, revision: hasChanged ? -1 : watched.revision)
        }
        handlers = session.handlers.map { Array($0.utf8) }
        for kind in [Channel.Kind.name, .pattern, .shard] {
            subscriptions += session.subscriptions[kind].keys.map {
                Subscription(kind: kind, name: $0)
            }
        }
        lastWatch = connection.watches.lastNumber
        watches = connection.watches.all.values.sorted { $0.number < $1.number }
            .map { WatchRecord($0, core) }
        tracking = session.tracking.map(TrackingRecord.init)
        holder = connection.holders?.connectionHolder?.stored
        isOfWatchedProcess = connection.holders?.process != nil
        input = Array(connection.inbound.bytes.bytes)
        output = Array(connection.outbound.bytes.bytes)
    }
}
