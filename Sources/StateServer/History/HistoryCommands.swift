import StateEngine
import StateWire

/// Verbs that read the history, STATE.REVERT and STATE.COMPACT.
struct HistoryCommands {
    private let services: Services
    private let settings: Settings
    private let listings: Listings
    let backups: BackupCommands

    init(_ services: Services) {
        self.services = services
        (settings, listings) = (services.settings, services.listings)
        backups = BackupCommands(services)
    }

    func history(
        _ key: Bytes,
        _ limit: Int,
        before revision: Int64?,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        try context.requireSight(.read, of: [Pattern(Key(verified: key))])
        guard services.registry.store.hasHistory else { throw HistoryCommands.noHistory }
        services.history.read(
            KeyHistoryJob(
                of: Array(key),
                from: context.core.newestChange(of: key),
                before: revision,
                limit: limit,
                for: context.connection,
                seeing: services.access.visibility(of: context.connection),
                byteLimit: settings.options.replyByteCount
            )
        )
    }

    func get(_ key: Bytes, at revision: Int64, _ context: inout CommandContext) throws(StateError) {
        try context.requireSight(.read, of: [Pattern(Key(verified: key))])
        let job = PastEntryJob(
            of: Array(key),
            from: context.core.newestChange(of: key),
            at: revision,
            for: context.connection,
            seeing: services.access.visibility(of: context.connection)
        )
        if try isPresent(revision, context) {
            let visibility = context.core.visibility(of: context.connection.subject)
            job.version = context.core.readDurable(key).flatMap { record in
                visibility.mayReveal(.read, about: record)
                    ? PastVersion(record, in: context.core) : nil
            }
            job.writeReply(&context)
        } else {
            services.history.read(job)
        }
    }

    func list(
        _ pattern: Bytes,
        _ after: Bytes?,
        _ limit: Int,
        _ form: Command.ListForm,
        at revision: Int64,
        _ context: inout CommandContext
    ) throws(StateError) {
        var request = try pastState(pattern, revision, "use LIMIT and AFTER to get it in parts")
        request.after = after.map { Array($0) }
        request.limit = limit
        request.needsValues = form == .entries || form == .long
        try context.requireSight(.read, of: request.patterns.patterns)
        request.subject = context.restriction
        request.view = services.access.visibility(of: context.connection)
        let isPresent = try isPresent(revision, context)
        let past = PastState(request, in: context.core)
        let job = PastListJob(past, form, for: context.connection, listings)
        if isPresent { try job.writeReply(&context) } else { services.history.read(job) }
    }

    // Not inlined into the switch of the commands: code that a SET does not need.
    @inline(never)
    func revert(
        _ pattern: Bytes,
        to revision: Int64,
        isDryRun: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let request = try pastState(pattern, revision, "revert one pattern at a time")
        try context.requireRevert(request.patterns)
        if !isDryRun { try context.requireNoCluster(request.patterns) }
        let isPresent = try isPresent(revision, context)
        let past = PastState(request, in: context.core)
        if isPresent {
            try revert(past, isDryRun: isDryRun, &context)
        } else {
            services.history.read(
                RevertJob(past, isDryRun: isDryRun, for: context.connection),
                for: context.connection
            )
        }
    }

    /// Sets and deletes, in one commit, the keys whose newest value differs from the past one.
    ///
    /// - Throws: ``StateError/Code/tooBig``, above the limit of a transaction; nothing has changed.
    func revert(
        _ past: PastState,
        isDryRun: Bool,
        _ context: inout CommandContext
    ) throws(StateError) {
        let entries = try past.allThatMayDiffer(in: context.core)
        let reverting = Reverting(context)
        guard !isDryRun else {
            let limit = settings.options.replyByteCount
            return try reverting.rehearse(entries, byteLimit: limit, &context)
        }
        let (count, revision) = try context.write {
            (transaction) throws(StateError) -> (Int, Int64) in
            var count = 0
            for entry in entries where try reverting.bring(entry, &transaction) { count += 1 }
            return (count, transaction.reachedRevision)
        }
        // The reply that there is nothing to change also depends on the newest changes.
        if count == 0 { context.core.observeAll(&context.receipt) }
        context.writeCount(count, revision)
    }

    /// A request for the past state of a pattern; `advice` is for the error if the reply is too
    /// large.
    private func pastState(
        _ pattern: Bytes,
        _ revision: Int64,
        _ advice: StaticString
    ) throws(StateError) -> PastState.Request {
        PastState.Request(
            PatternSet([try Pattern(pattern)]),
            at: revision,
            byteLimit: settings.options.replyByteCount,
            advice: advice
        )
    }

    /// Whether a revision is the current one, which is in memory; older ones need the history.
    private func isPresent(
        _ revision: Int64,
        _ context: borrowing CommandContext
    ) throws(StateError) -> Bool {
        guard revision <= context.core.revisions.durable else {
            throw .notYet(revision, current: context.core.revisions.durable)
        }
        guard services.registry.store.hasHistory || revision == context.core.revisions.durable
        else {
            throw HistoryCommands.noHistory
        }
        return revision == context.core.revisions.durable
    }

    static let noHistory = StateError(.compacted, "values in memory have no history")

    // MARK: STATE.COMPACT

    /// Compacts on the commit thread; the connection waits.
    func compact(
        to revision: Int64?,
        shrinks: Bool,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard !context.isExecuting else {
            throw StateError(.err, "STATE.COMPACT is not allowed inside MULTI")
        }
        try context.requireAdmin("STATE.COMPACT")
        let wait = CompactionWait(context.connection, services)
        try services.keyspace.compact(to: revision, shrinks: shrinks, in: context.core) {
            wait.finish($0)
        }
        context.connection.inbound.awaitsLateReply = true
    }
}

/// A STATE.COMPACT whose connection waits for the commit thread.
///
/// `@unchecked Sendable`: only the loop thread uses it, also for the reply.
private final class CompactionWait: @unchecked Sendable {
    private let connection: Connection
    private weak var services: Services?

    init(_ connection: Connection, _ services: Services) {
        (self.connection, self.services) = (connection, services)
    }

    func finish(_ result: Result<CompactionReply, StateError>) {
        guard let services, !connection.isClosed else { return }
        connection.inbound.awaitsLateReply = false
        services.keyspace.withCore { core in
            services.gate.answer(connection, core) { (context) throws(StateError) in
                let reply = try result.get()
                context.output.writeMap(reply.freedByteCount == nil ? 1 : 2, context.version)
                context.output.writeField("compacted", reply.compacted)
                if let count = reply.freedByteCount { context.output.writeField("freed", count) }
            }
        }
    }
}
