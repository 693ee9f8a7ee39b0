import CLinux
import StateEngine
import StateWire

/// Carries commands out: finds the verb, checks it, and hands it to the keyspace or the session.
///
/// Every reply is written to the end of the connection's output. Where the command looked at something that is not durable
/// yet, or other replies wait before it, the reply is moved behind what it waits for.
final class Dispatcher {
    /// The server exchanges them.
    var options: ServerOptions {
        didSet { channels.outputByteLimit = options.outputByteCount }
    }
    let registry: Registry
    let flushes: FlushList
    let channels: Channels
    var cursors: ScanCursors
    /// Wall time of this turn in milliseconds since 1970.
    var now: Int64 = 0
    /// What the history thread knows of the rules.
    let historyRules: HistoryRules
    var access = AccessState()
    /// What clients can have logged again and again.
    let repeated = RepeatedLines()
    /// How many watches the limits of rules count.
    var watchTally = WatchTally()
    /// A transaction is open and commands are part of it.
    var isExecuting = false
    /// What its connection subscribed to before it changed that; nil where it has not.
    var subscriptionsBefore: Subscriptions?
    /// Has a job read from the history; set by the server.
    var submit: (any HistoryJob) -> Void = { _ in }
    /// Has a command that lists go on when it is its turn; set by the server.
    var goOnLater: (ListingCommand) -> Void = { _ in }
    /// What the last command cost beside one that reads or writes a small value.
    private(set) var lastWeight = 0
    /// What the commits of the slice at hand will take to be published to watches.
    var owedNanoseconds: Int64 = 0
    /// Bytes of all versions that were ever put into memory.
    var takenByteCount: Int64 = 0
    /// Whether something was committed since this was last looked at.
    var hasCommitted = false
    /// Entries that the transaction under way may still look at in listings.
    var visitsLeft = 0
    /// The STATE.CHANGES that wait.
    let waitingForChanges = BlockedList()
    /// Has the configuration read again; set by the server.
    var reload: (Connection) throws(StateError) -> Void = { _ in }
    /// Files that are refused; set by who serves them.
    var refusedFiles: () -> [RefusedFile] = { [] }
    /// Has the commit thread compact; set by the server.
    var compact: (CompactionWait, KeyspaceCore) throws(StateError) -> Void = { _, _ in }

    init(options: ServerOptions, registry: Registry, flushes: FlushList, core: KeyspaceCore) {
        historyRules = HistoryRules(core)
        self.options = options
        self.registry = registry
        self.flushes = flushes
        channels = Channels(
            flushes: flushes,
            memory: registry.memory,
            outputByteLimit: options.outputByteCount
        )
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
        var receipt = core.makeReceipt()
        lastWeight = 1
        do throws(StateError) {
            let verb = try findVerb(arguments, for: connection)
            if connection.isSubscribed { try checkMayRun(verb, arguments, connection) }
            if let reason = whatToWaitFor(verb, arguments, connection, core) {
                return .wait(reason)
            }
            connection.commandCount += 1
            lastWeight = verb.weight(byteCount: raw.count, hasRules: core.rules != nil)
            // Nearly all commands have few arguments.
            if arguments.count > 64 { try checkSteps(verb, arguments, connection, core) }
            if let transaction = connection.transaction, !Dispatcher.runsInside(verb) {
                try queue(
                    verb,
                    arguments,
                    byteCount: raw.count,
                    in: transaction,
                    core.files
                )
                connection.output.append("+QUEUED\r\n")
            } else {
                try run(Command(verb, arguments), for: connection, in: core, &receipt)
            }
        } catch {
            connection.output.truncate(to: start)
            connection.output.writeError(error)
            logDenial(connection, core)
        }
        lastWeight += (connection.output.count - start) >> 12
        send(from: start, receipt, connection, core)
        if subscriptionsBefore != nil {
            connection.isConfirmationHeld = !connection.held.isEmpty
            subscriptionsBefore = nil
        }
        if channels.hasPostponed { channels.publishPostponed() }
        return .done
    }

    /// Sends the reply that begins at `start` in the output, or keeps it back until what it depends on is durable.
    private func send(
        from start: Int,
        _ receipt: borrowing Receipt,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) {
        // The reply comes later: from the history.
        guard connection.output.count > start else { return }
        let isHeld = receipt.revision > core.revisions.durable
        if isHeld || !connection.held.isEmpty {
            if connection.held.isEmpty { connection.isConfirmationHeld = false }
            let reply = connection.output.bytes.slice(start, connection.output.count)
            connection.held.append(
                reply,
                behind: isHeld ? receipt.revision : 0,
                reporting: receipt.reportedRevision,
                isFinal: receipt.isFinal
            )
            connection.output.truncate(to: start)
            registry.addHolding(connection)
        } else if receipt.reportedRevision > 0 {
            registry.early.append(receipt.reportedRevision)
        }
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
        _ arguments: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore
    )
        -> Connection.Pause?
    {
        let isRead = !verb.isWrite && verb.name != .exec
        if isRead, connection.held.isEmpty, !registry.memory.isTight { return nil }
        let queued = connection.transaction
        let isWrite =
            verb.name == .exec ? queued?.hasWrites ?? false : verb.isWrite && queued == nil
        if isWrite, core.pending.byteCount >= options.limits.queueByteCount {
            return .queueIsFull
        }
        if let files = core.files, isWrite, awaitsFiles(verb, arguments, connection, files) {
            return .filesAreEdited
        }
        if registry.memory.isTight, verb.asksForMuch, registry.memory.mustWait(connection) {
            return .memoryIsFull
        }
        guard !connection.held.isEmpty else { return nil }
        let isLast = isAboutWatches(verb) || looksBack(verb, arguments)
        return isLast ? .repliesAreHeld : nil
    }

    /// Whether the verb begins or ends watches or subscriptions.
    ///
    /// Pushes of a new watch must not pass the reply that tells its number, and what the connection wrote before is told
    /// to a watch that ends. So with handlers, which begin and are done at what is durable.
    private func isAboutWatches(_ verb: Verb) -> Bool {
        switch verb.name {
        case .stateWatch, .stateUnwatch, .hello, .reset, .stateHandler: true
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe: true
        default: false
        }
    }

    /// Has the reply of a command read from the history; the connection waits.
    func read(_ job: some ConnectionJob) { read(job, for: job.connection) }

    /// The same with a job that answers in its own way.
    func read(_ job: some HistoryJob, for connection: Connection) {
        connection.awaitsLateReply = true
        connection.accessCount = access.count
        submit(job)
    }

    /// Makes and sends a reply that comes later than its command.
    func answer(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ body: (inout Receipt) throws(StateError) -> Void
    ) {
        let start = connection.output.count
        var receipt = core.makeReceipt()
        do throws(StateError) {
            try body(&receipt)
        } catch {
            connection.output.truncate(to: start)
            connection.output.writeError(error)
            logDenial(connection, core)
        }
        send(from: start, receipt, connection, core)
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// The bytes as text for a message.
    var shown: String { String(decoding: self, as: UTF8.self) }
}
