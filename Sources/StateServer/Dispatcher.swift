import CLinux
import StateEngine
import StateWire

/// Carries commands out: finds the verb, checks it, and hands it to the keyspace or the session.
///
/// Every reply is written to the end of the connection's output. Where the command looked at something that is not durable
/// yet, or other replies wait before it, the reply is moved behind what it waits for.
final class Dispatcher {
    let options: ServerOptions
    let registry: Registry
    let flushes: FlushList
    var cursors: ScanCursors
    /// Wall time of this turn in milliseconds since 1970.
    var now: Int64 = 0
    /// A transaction is open and commands are part of it.
    var isExecuting = false
    /// The commit of which the reply under way may tell before it is durable; 0: it may not.
    private var earlyRevision: Int64 = 0
    /// Has a job read from the history; set by the server.
    var submit: (any HistoryJob) -> Void = { _ in }
    /// Has the commit thread compact; set by the server.
    var compact: (CompactionWait, KeyspaceCore) throws(StateError) -> Void = { _, _ in }

    init(options: ServerOptions, registry: Registry, flushes: FlushList) {
        self.options = options
        self.registry = registry
        self.flushes = flushes
        cursors = ScanCursors(capacity: options.scanCount)
    }

    /// Whether a command was carried out.
    enum Result {
        case done
        /// It was not begun; the connection waits for this first.
        case wait(Connection.Pause)
    }

    /// Carries a command out and sees to its reply.
    ///
    /// - Parameters:
    ///   - arguments: The command.
    ///   - raw: Its bytes as they came.
    ///   - connection: Who sent it.
    ///   - core: The keyspace, whose lock is held.
    /// - Returns: Whether it was carried out, or what it waits for.
    func perform(
        _ arguments: Arguments,
        raw: Bytes,
        for connection: Connection,
        in core: KeyspaceCore
    ) -> Result {
        let start = connection.output.count
        core.observedRevision = 0
        earlyRevision = 0
        do throws(StateError) {
            let verb = try findVerb(arguments, for: connection)
            if let reason = whatToWaitFor(verb, connection, core) { return .wait(reason) }
            connection.commandCount += 1
            if let transaction = connection.transaction, !Dispatcher.runsInside(verb) {
                try queue(verb, arguments, raw, in: transaction)
                connection.output.append("+QUEUED\r\n")
            } else {
                try run(Command(verb, arguments), for: connection, in: core)
            }
        } catch {
            connection.output.truncate(to: start)
            connection.output.writeError(error)
        }
        hold(from: start, connection, core)
        return .done
    }

    /// Sees to a reply that begins at `start`: it goes, or it waits.
    func hold(from start: Int, _ connection: Connection, _ core: KeyspaceCore) {
        // The reply comes later: from the history.
        guard connection.output.count > start else { return }
        let isHeld = core.observedRevision > core.durableRevision
        if isHeld || !connection.held.isEmpty {
            let reply = connection.output.bytes.slice(start, connection.output.count)
            connection.held.append(
                reply,
                behind: isHeld ? core.observedRevision : 0,
                tellingOf: earlyRevision
            )
            connection.output.truncate(to: start)
            registry.addHolding(connection)
        } else if earlyRevision > 0 {
            registry.early.append(earlyRevision)
        }
        earlyRevision = 0
        flushes.add(connection)
    }

    /// The verb, whose number of arguments fits; an open transaction does not survive one that does not.
    private func findVerb(
        _ arguments: Arguments,
        for connection: Connection
    )
        throws(StateError) -> Verb
    {
        let verb = Verb.named(arguments[0])
        if let verb, verb.accepts(argumentCount: arguments.count) { return verb }
        refuseTransaction(of: connection)
        throw verb.map(wrongArity) ?? unknownCommand(arguments)
    }

    /// In Redis's words, which clients look for.
    private func unknownCommand(_ arguments: Arguments) -> StateError {
        var text = "unknown command '\(arguments[0].prefix(128).shown)', with args beginning with: "
        for index in 1..<max(1, min(arguments.count, 20)) where text.utf8.count < 256 {
            text += "'\(arguments[index].prefix(128).shown)' "
        }
        return StateError(.err, text)
    }

    private func whatToWaitFor(
        _ verb: Verb,
        _ connection: Connection,
        _ core: KeyspaceCore
    )
        -> Connection.Pause?
    {
        let queued = connection.transaction
        let isWrite =
            verb.name == .exec ? queued?.hasWrites ?? false : verb.isWrite && queued == nil
        if isWrite, core.uncommittedByteCount >= options.limits.queueByteCount {
            return .queueIsFull
        }
        return isAboutWatches(verb) && !connection.held.isEmpty ? .repliesAreHeld : nil
    }

    /// Whether the verb begins or ends watches.
    ///
    /// Pushes of a new watch must not pass the reply that tells its number, and what the connection wrote before is told
    /// to a watch that ends.
    private func isAboutWatches(_ verb: Verb) -> Bool {
        switch verb.name {
        case .stateWatch, .stateUnwatch, .hello, .reset: true
        default: false
        }
    }

    /// Has the reply of a command read from the history; the connection waits.
    func read(_ job: some ConnectionJob) {
        job.connection.isReadingHistory = true
        submit(job)
    }

    /// Sees to a reply that comes later than its command.
    func answer(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ body: () throws(StateError) -> Void
    ) {
        let start = connection.output.count
        core.observedRevision = 0
        do throws(StateError) {
            try body()
        } catch {
            connection.output.truncate(to: start)
            connection.output.writeError(error)
        }
        hold(from: start, connection, core)
    }

    // MARK: The table

    func run(
        _ command: Command,
        for connection: Connection,
        in core: KeyspaceCore
    )
        throws(StateError)
    {
        switch command {
        case .get(let key): get(key, connection, core)
        case .set(let key, let value, let condition, let returnsOld):
            try set(key, value, condition, returnsOld: returnsOld, connection, core)
        case .multiGet(let keys): try multiGet(keys, connection, core)
        case .exists(let keys): exists(keys, connection, core)
        case .type(let key): type(key, connection, core)
        case .length(let key): length(key, connection, core)
        case .databaseSize: connection.output.writeInteger(Int64(core.durableKeyCount))
        case .keys(let glob): try keys(glob, connection, core)
        case .scan(let cursor, let match, let count):
            try scan(cursor, match, count, connection, core)
        case .getDelete(let key): try getDelete(key, connection, core)
        case .multiSet(let pairs, let onlyIfAllAbsent):
            try multiSet(pairs, onlyIfAllAbsent: onlyIfAllAbsent, connection, core)
        case .delete(let keys): try delete(keys, connection, core)
        case .append(let key, let suffix): try append(suffix, to: key, connection, core)
        case .add(let key, let number): try add(number, to: key, connection, core)
        case .multi: try begin(connection)
        case .execute: try execute(connection, core)
        case .discard: try discard(connection)
        case .watchKeys(let keys): try watchKeys(keys, connection, core)
        case .unwatchKeys:
            connection.watchedKeys = []
            connection.output.writeOK()
        case .stateGet(let key): stateGet(key, connection, core)
        case .stateSet(let key, let value, let conditions, let durability):
            try stateSet(key, value, conditions, durability, connection, core)
        case .stateApply(let steps): try stateApply(steps, connection, core)
        case .stateDelete(let patterns, let isDryRun):
            try stateDelete(patterns, isDryRun: isDryRun, connection, core)
        case .stateList(let pattern, let after, let limit, let form):
            try stateList(pattern, after, limit, form, connection, core)
        case .stateWatch(let patterns, let options):
            try stateWatch(patterns, options, connection, core)
        case .stateUnwatch(let watch): try stateUnwatch(watch, connection, core)
        case .stateHistory(let key, let limit): try stateHistory(key, limit, connection, core)
        case .stateCompact(let revision, let shrinks):
            try stateCompact(to: revision, shrinks: shrinks, connection, core)
        case .stateStatus: stateStatus(connection, core)
        case .hello, .authenticate, .ping, .echo, .quit, .reset, .select, .client, .information,
            .describe, .configuration, .time:
            try runSession(command, for: connection, in: core)
        }
    }

    // MARK: What several commands need

    /// Makes what `body` changes one commit, or part of the transaction that is open.
    func write<R>(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ body: () throws(StateError) -> R
    ) throws(StateError) -> R {
        guard !isExecuting else { return try body() }
        core.begin(cause(of: connection, core), at: now)
        let result: R
        do throws(StateError) {
            result = try body()
        } catch {
            core.rollBack()
            throw error
        }
        let revision = core.finish()
        core.observedRevision = max(core.observedRevision, revision)
        return result
    }

    /// The same, with a reply that only waits for what `looksAt` read of others, not for the commit itself.
    func writeEarly(
        _ connection: Connection,
        _ core: KeyspaceCore,
        looksAt: () throws(StateError) -> Int64,
        _ body: () throws(StateError) -> Void
    ) throws(StateError) -> Int64 {
        var observed: Int64 = 0
        try write(connection, core) { () throws(StateError) in
            observed = try looksAt()
            try body()
            earlyRevision = core.openRevision
        }
        core.observedRevision = observed
        return earlyRevision
    }

    /// Who a connection's commits are by; found out at its first write.
    func cause(of connection: Connection, _ core: KeyspaceCore) -> InternedCause {
        if let cause = connection.cause { return cause }
        let cause = core.retainCause(
            Cause(
                uid: connection.peer.uid,
                gid: connection.peer.gid,
                pid: connection.peer.pid,
                command: connection.peerCommand,
                client: String(decoding: connection.name, as: UTF8.self)
            )
        )
        connection.cause = cause
        return cause
    }

    /// Refuses a reply that has grown beyond its limit.
    func checkReply(_ byteCount: Int) throws(StateError) {
        guard byteCount > options.replyByteCount else { return }
        throw StateError(
            .tooBig,
            "a reply of more than \(options.replyByteCount) bytes; ask for parts with LIMIT and AFTER"
        )
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// The bytes as text for a message.
    var shown: String { String(decoding: self, as: UTF8.self) }
}
