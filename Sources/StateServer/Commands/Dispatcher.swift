import CLinux
import StateEngine
import StateWire

/// Finds the verb of a command; makes it wait, queues it or runs it; and sends the reply with its
/// receipt.
///
/// Every reply is written to the end of the connection's output. If the command read something that
/// is not durable yet, or earlier replies wait, the reply is held.
final class Dispatcher {
    private let settings: Settings
    // Used by every command: another object on the way to them would cost a retain and a release.
    let gate: ReplyGate
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
    let administration: AdministrationCommands
    let scripts: ScriptCommands
    let documentation = DocumentationCommands()
    private let statistics: CommandStatistics
    private let monitors: Monitors
    private let tracking: Tracking
    private let registry: Registry
    /// The cost of the last command, relative to one that reads or writes a small value.
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
        state = StateCommands(services)
        (history, watches) = (HistoryCommands(services), WatchCommands(services))
        changes = ChangesCommands(services)
        channels = ChannelCommands(
            settings: settings,
            channels: services.channels,
            listings: services.listings
        )
        handlers = HandlerCommands(settings: settings, registry: services.registry)
        rules = RuleCommands(
            configuration: services.configuration,
            settings: settings,
            listings: services.listings
        )
        session = SessionCommands(services, watches, handlers)
        (report, administration) = (ReportCommands(services), AdministrationCommands(services))
        scripts = ScriptCommands(strings, state)
        (statistics, monitors) = (services.statistics, services.monitors)
        (tracking, registry) = (services.tracking, services.registry)
    }

    /// Whether a command ran.
    enum Result {
        case done
        /// It did not run; the connection must wait for this first.
        case wait(Inbound.Pause)
    }

    /// Runs a command and sends its reply.
    ///
    /// - Parameters:
    ///   - arguments: The command.
    ///   - raw: Its bytes as received.
    ///   - context: The context of its connection.
    /// - Returns: Whether it ran, or what it waits for.
    func perform(
        _ arguments: Arguments,
        raw: Bytes,
        _ context: inout CommandContext
    ) -> Result {
        let start = context.output.count
        context.beginAnswer()
        lastWeight = 1
        var began: Int64 = 0
        var running: Verb?
        do throws(StateError) {
            let verb = try findVerb(arguments, context)
            if context.connection.session.isSubscribed { try context.checkMayRun(verb, arguments) }
            if let reason = whatToWaitFor(verb, arguments, &context) { return .wait(reason) }
            if registry.observers.hasMonitors { monitors.send(verb, arguments, context) }
            context.connection.session.usage.commandCount += 1
            context.connection.session.usage.lastCommand = verb.name
            context.connection.session.usage.lastCommandAt = context.time
            lastWeight = verb.weight(byteCount: raw.count, hasRules: context.core.rules != nil)
            began = statistics.begin(verb, weight: lastWeight)
            running = verb
            let client = context.connection.session.tracking
            if let client { client.revisionBefore = context.core.newestRevision }
            if registry.observers.refusesStale {
                try state.mirror.refuseStale(verb, arguments, context)
            }
            // Nearly all commands have few arguments.
            if arguments.count > 64 { try settings.options.checkSteps(verb, arguments, context) }
            // `if let` would retain it; nearly all commands are outside of a transaction.
            if context.connection.session.transaction != nil, !TransactionCommands.runsInside(verb)
            {
                try queue(verb, arguments, byteCount: raw.count, context)
                if let client { tracking.note(verb, arguments, isQueued: true, client, context) }
            } else {
                try run(Command(verb, arguments), verb.name, &context)
                if let client { tracking.note(verb, arguments, isQueued: false, client, context) }
            }
        } catch {
            statistics.noteError(error, of: running ?? Verb.named(arguments[0]), ran: began != 0)
            gate.refuse(error, from: start, context)
        }
        if began != 0, let running {
            statistics.end(running, since: began, arguments, context.connection, at: context.time)
        }
        lastWeight += (context.output.count - start) >> 12
        if context.offer == nil {
            gate.send(from: start, &context)
        } else {
            offer(arguments, from: start, &context)
        }
        if context.isExecuting { context.endExecution() }
        channels.channels.publishPostponed()
        return .done
    }

    /// The verb, after a check of the number of arguments; a wrong command fails an open
    /// transaction.
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

    private func whatToWaitFor(
        _ verb: Verb,
        _ arguments: Arguments,
        _ context: inout CommandContext
    ) -> Inbound.Pause? {
        // Of the writes only a revert does.
        let looksBack = (!verb.isWrite || verb.name == .stateRevert) && verb.looksBack(arguments)
        let isPlainRead = !verb.isWrite && !verb.isExecution && !looksBack
        let isQuiet = context.connection.outbound.held.isEmpty && !memory.isTight
        if isPlainRead, isQuiet, registry.pause == nil { return nil }
        let connection = context.connection
        let queued = connection.session.transaction
        if let pause = registry.pause, pause.holds(verb, queued) { return .clientsArePaused }
        let isWrite = verb.isExecution ? queued?.hasWrites == true : verb.isWrite && queued == nil
        if isWrite, connection.mustWaitForDisk(settings.options, context.core) {
            return .queueIsFull
        }
        if let files = context.core.files, isWrite {
            let keys = connection.fileKeys(of: verb, arguments, files)
            if !keys.isEmpty, settings.options.mustWaitForFiles(context.core) {
                return .queueIsFull
            }
            if connection.awaits(keys, files) { return .filesAreEdited }
        }
        if memory.isTight, verb.asksForMuch, memory.mustWait(connection) { return .memoryIsFull }
        if looksBack, context.mustWaitForCommits() { return .commitsAreOnTheirWay }
        guard !connection.outbound.held.isEmpty else { return nil }
        return verb.isAboutWatches || looksBack ? .repliesAreHeld : nil
    }
}

/// The table of commands and the functions that run them.
extension Dispatcher {
    /// Runs a command, alone or as a step of a transaction.
    func run(
        _ command: Command,
        _ name: Verb.Name,
        _ context: inout CommandContext
    ) throws(StateError) {
        if registry.observers.logsReads { gate.logReads(command, name, context) }
        switch command {
        case .get(let key): try strings.get(key, &context)
        case .set(let key, let value, let condition, let expiry, let returnsOld):
            try strings.set(key, value, condition, expiry, returnsOld: returnsOld, &context)
        case .expiry(let key, let step): try keyspace.run(step, of: key, &context)
        case .multiGet(let keys): try strings.multiGet(keys, &context)
        case .length(let key): try strings.length(key, &context)
        case .getDelete(let key): try strings.getDelete(key, &context)
        case .multiSet(let pairs, let onlyIfAllAbsent):
            try strings.multiSet(pairs, onlyIfAllAbsent: onlyIfAllAbsent, &context)
        case .delete(let keys): try strings.delete(keys, &context)
        case .append(let key, let suffix): try strings.append(suffix, to: key, &context)
        case .add(let key, let number): try strings.add(number, to: key, &context)
        case .value(let command): try strings.run(command, &context)
        case .name(.flush): try state.flush(&context)
        case .name(let command): try keyspace.run(command, &context)
        case .administer(let command): try administration.run(command, &context)
        case .script(let command): try scripts.run(command, &context)
        case .describe(let command): documentation.run(command, context)
        case .help(let verb): documentation.help(verb, context)
        case .exists(let keys): try keyspace.exists(keys, &context)
        case .type(let key): try keyspace.type(key, &context)
        case .databaseSize: try keyspace.databaseSize(context)
        case .keys(let glob): try keyspace.keys(glob, &context)
        case .scan(let scan): try keyspace.scan(scan, &context)
        case .multi: try transactions.begin(context)
        case .execute:
            try transactions.execute(&context) { (queued, context) throws(StateError) in
                try run(queued.command, queued.name, &context)
            }
        case .discard: try transactions.discard(context)
        case .watchKeys(let keys): try transactions.watchKeys(keys, &context)
        case .unwatchKeys: transactions.unwatchKeys(context)
        case .subscribe(let names, let kind): try channels.subscribe(names, kind, &context)
        case .unsubscribe(let names, let kind): try channels.unsubscribe(names, kind, &context)
        case .publish(let channel, let message, let isSharded):
            try channels.publish(message, to: channel, isSharded: isSharded, context)
        case .channels(let command): try channels.describe(command, &context)
        case .configure(let pairs): try channels.configure(pairs, context)
        case .stateGet(let key, nil): try state.get(key, &context)
        case .stateGet(let key, let revision?): try history.get(key, at: revision, &context)
        case .stateSet(let key, let value, let conditions, let options):
            try state.set(key, value, conditions, options, &context)
        case .stateSync(let isLocal): try state.sync(isLocal: isLocal, &context)
        case .stateApply(let steps): try state.apply(steps, &context)
        case .stateDelete(let patterns, let isDryRun):
            try state.delete(patterns, isDryRun: isDryRun, &context)
        case .stateList(let pattern, let after, let limit, let form, nil):
            try state.list(pattern, after, limit, form, &context)
        case .stateList(let pattern, let after, let limit, let form, let revision?):
            try history.list(pattern, after, limit, form, at: revision, &context)
        case .stateWatch(let patterns, let options, let resume):
            try watches.watch(patterns, options, resume, context)
        case .stateUnwatch(let watch): try watches.unwatch(watch, context)
        case .stateWatches: try watches.list(&context)
        case .stateHistory(let key, let limit, let revision):
            try history.history(key, limit, before: revision, context)
        case .stateRevert(let pattern, let revision, let isDryRun):
            try history.revert(pattern, to: revision, isDryRun: isDryRun, &context)
        case .stateCompact(let revision, let shrinks):
            try history.compact(to: revision, shrinks: shrinks, context)
        case .stateChanges(let patterns, let options):
            try changes.changes(patterns, options, &context)
        case .stateHandler(let name, let step): try handlers.handler(name, step, &context)
        case .stateHandlers: try handlers.list(&context)
        case .stateReload(let isDryRun): try rules.reload(isDryRun: isDryRun, context)
        case .stateExplain(let key): try rules.explain(key, context)
        case .stateRules: rules.list(&context)
        case .stateDefaults(let pattern): try rules.listDefaults(pattern, &context)
        case .stateCheck(let pattern, let after, let limit):
            try rules.check(pattern, after, limit, &context)
        case .stateClaim(let claim): try state.claim(claim, &context)
        case .stateMirror(let step): try state.mirror.run(step, &context)
        case .stateChildren(let pattern, let after, let limit):
            try state.children(pattern, after, limit, &context)
        case .stateBackup(let step): try history.backups.run(step, &context)
        case .stateStatus: report.status(&context)
        case .information(let sections): report.information(sections, &context)
        case .hello, .authenticate, .ping, .echo, .quit, .reset, .select, .client,
            .configuration, .time:
            try session.run(command, &context)
        }
    }
}

extension Verb {
    /// The cost of a command, relative to one that reads or writes a small value.
    ///
    /// The clock is checked after each 16, and may end the slice.
    func weight(byteCount: Int, hasRules: Bool) -> Int {
        switch name {
        case .get, .ping, .echo, .exists, .type, .strlen, .stateGet, .ttl, .pttl, .getrange:
            1 + byteCount >> 10
        case .set, .incr, .incrby, .decr, .decrby, .append, .getdel, .stateSet, .del, .setex,
            .psetex, .getex, .expire, .pexpire, .persist, .setnx, .getset, .setrange:
            // Checking a schema may take long for one value.
            (hasRules ? 63 : 1) + byteCount >> 10
        default: 64
        }
    }
}

extension CommandStatistics {
    /// Counts a call; returns when it began, on the monotonic clock; 0 if it is not measured.
    @inline(__always)
    fileprivate func begin(_ verb: Verb, weight: Int) -> Int64 {
        counts[verb.index].calls &+= 1
        untilSample = untilSample > 0 ? untilSample - 1 : CommandStatistics.sampledEvery - 1
        return weight >= 64 || untilSample == 0 ? clinux_monotonic_nanoseconds() : 0
    }
}
