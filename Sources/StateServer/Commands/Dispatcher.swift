import CLinux
import StateEngine
import StateWire

/// Finds the verb of a command, has it wait, queues it or hands it to the commands of its family, and sends the answer with its receipt.
///
/// Every answer is written to the end of the connection's output. If the command looked at something that is not durable
/// yet, or other answers wait before it, the answer is moved behind what it waits for.
final class Dispatcher {
    private let settings: Settings
    // On the way of every command: read through another object, each of them cost a retain and a release.
    private let gate: ReplyGate
    private let memory: ClientMemory
    let strings: StringCommands
    let keyspace: KeyspaceCommands
    let transactions: TransactionCommands
    let state: StateCommands
    let history: HistoryCommands
    let watches: WatchCommands
    let changes: ChangesCommands
    let channels: ChannelCommands
    let handlers: HandlerCommands
    let rules: RuleCommands
    let session: SessionCommands
    let report: ReportCommands
    /// What the last command cost beside one that reads or writes a small value.
    private(set) var lastWeight = 0

    init(_ services: Services) {
        settings = services.settings
        gate = services.gate
        memory = services.registry.memory
        strings = StringCommands(settings: settings)
        keyspace = KeyspaceCommands(
            settings: settings,
            listings: services.listings,
            cursors: ScanCursors(capacity: settings.options.scanCount)
        )
        transactions = TransactionCommands(settings: settings, channels: services.channels)
        state = StateCommands(settings: settings, listings: services.listings)
        history = HistoryCommands(services)
        watches = WatchCommands(services)
        changes = ChangesCommands(services)
        channels = ChannelCommands(settings: settings, channels: services.channels)
        handlers = HandlerCommands(settings: settings, registry: services.registry)
        rules = RuleCommands(configuration: services.configuration)
        session = SessionCommands(services, watches, handlers)
        report = ReportCommands(services)
    }

    /// Whether a command was carried out.
    enum Result {
        case done
        /// It was not begun; the connection waits for this first.
        case wait(Inbound.Pause)
    }

    /// Carries a command out and sees to its answer.
    ///
    /// - Parameters:
    ///   - arguments: The command.
    ///   - raw: Its bytes as they came.
    ///   - context: Of who sent it.
    /// - Returns: Whether it was carried out, or what it waits for.
    func perform(
        _ arguments: Arguments,
        raw: Bytes,
        _ context: inout CommandContext
    ) -> Result {
        let start = context.output.count
        context.beginAnswer()
        lastWeight = 1
        do throws(StateError) {
            let verb = try findVerb(arguments, context)
            if context.connection.session.isSubscribed { try context.checkMayRun(verb, arguments) }
            if let reason = whatToWaitFor(verb, arguments, context) { return .wait(reason) }
            context.connection.session.commandCount += 1
            lastWeight = verb.weight(byteCount: raw.count, hasRules: context.core.rules != nil)
            // Nearly all commands have few arguments.
            if arguments.count > 64 {
                try settings.options.checkSteps(verb, arguments, context)
            }
            if let transaction = context.connection.session.transaction,
                !TransactionCommands.runsInside(verb)
            {
                try transactions.queue(
                    verb,
                    arguments,
                    byteCount: raw.count,
                    in: transaction,
                    context.core.files
                )
                context.output.append("+QUEUED\r\n")
            } else {
                try run(Command(verb, arguments), &context)
            }
        } catch {
            gate.refuse(error, from: start, context)
        }
        lastWeight += (context.output.count - start) >> 12
        gate.send(from: start, context)
        if context.isExecuting { endExecution(&context) }
        if channels.channels.hasPostponed { channels.channels.publishPostponed() }
        return .done
    }

    /// The answer of EXEC is sent.
    private func endExecution(_ context: inout CommandContext) {
        if context.execution?.subscriptionsBefore != nil {
            context.connection.outbound.isConfirmationHeld = !context.connection.outbound.held
                .isEmpty
        }
        context.execution = nil
    }

    /// The verb, whose number of arguments fits; an open transaction does not survive one that does not.
    @inline(__always)
    private func findVerb(
        _ arguments: Arguments,
        _ context: borrowing CommandContext
    ) throws(StateError) -> Verb {
        let verb = Verb.named(arguments[0])
        if let verb, verb.accepts(argumentCount: arguments.count) { return verb }
        context.connection.session.transaction?.refuse()
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
        _ context: borrowing CommandContext
    ) -> Inbound.Pause? {
        let isExecution = verb.isExecution
        let isRead = !verb.isWrite && !isExecution
        if isRead, context.connection.outbound.held.isEmpty, !memory.isTight { return nil }
        let queued = context.connection.session.transaction
        let isWrite =
            isExecution ? queued?.hasWrites ?? false : verb.isWrite && queued == nil
        if isWrite, context.core.pending.byteCount >= settings.options.limits.queueByteCount {
            return .queueIsFull
        }
        if let files = context.core.files, isWrite,
            context.connection.awaitsFiles(verb, arguments, files)
        {
            return .filesAreEdited
        }
        if memory.isTight, verb.asksForMuch, memory.mustWait(context.connection) {
            return .memoryIsFull
        }
        guard !context.connection.outbound.held.isEmpty else { return nil }
        return verb.isAboutWatches || verb.looksBack(arguments) ? .repliesAreHeld : nil
    }
}

extension Verb {
    /// What a command costs beside one that reads or writes a small value; a slice ends at the clock that is looked at for each 16.
    func weight(byteCount: Int, hasRules: Bool) -> Int {
        switch name {
        case .get, .ping, .echo, .exists, .type, .strlen, .stateGet: 1 + byteCount >> 10
        case .set, .incr, .incrby, .decr, .decrby, .append, .getdel, .stateSet, .del:
            // A schema may take long for one value.
            (hasRules ? 64 : 1) + byteCount >> 10
        default: 64
        }
    }

    /// Whether the verb begins or ends watches or subscriptions.
    ///
    /// Pushes of a new watch must not pass the reply that tells its number, and what the connection wrote before is told
    /// to a watch that ends. So with handlers, which begin and are done at what is durable.
    fileprivate var isAboutWatches: Bool {
        switch name {
        case .stateWatch, .stateUnwatch, .hello, .reset, .stateHandler: true
        case .subscribe, .unsubscribe, .psubscribe, .punsubscribe: true
        default: false
        }
    }

    /// Whether its reply may be as long as a reply may be.
    var asksForMuch: Bool {
        switch name {
        case .mget, .keys, .scan, .exec, .pubsub, .stateList, .stateHistory, .stateChanges,
            .stateWatches, .stateHandlers, .stateCheck:
            true
        default: false
        }
    }

    /// Whether the verb tells of what is durable: what the connection wrote before it is part of that.
    fileprivate func looksBack(_ arguments: Arguments) -> Bool {
        switch name {
        case .stateHistory, .stateRevert, .stateChanges: true
        case .stateGet, .stateList:
            (2..<max(2, arguments.count)).contains { arguments.isWord($0, "AT") }
        default: false
        }
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// The bytes as text for a message.
    var shown: String { String(decoding: self, as: UTF8.self) }
}
