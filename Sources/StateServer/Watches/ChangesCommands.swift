import StateEngine
import StateWire

/// STATE.CHANGES: the commits since a revision, for clients that poll.
struct ChangesCommands {
    private let services: Services
    private let settings: Settings
    private let listings: Listings

    init(_ services: Services) {
        self.services = services
        (settings, listings) = (services.settings, services.listings)
    }

    func changes(
        _ patterns: Arguments,
        _ options: Command.ChangesOptions,
        _ context: inout CommandContext
    ) throws(StateError) {
        let request = ChangesRequest(
            patterns: try settings.options.patternSet(patterns),
            options: ChangesRequest.Options(options),
            version: context.version,
            byteLimit: settings.options.replyByteCount,
            view: services.access.visibility(of: context.connection),
            accessCount: services.access.count,
            includesEpoch: options.epoch != nil
        )
        try context.requireSight(.watch, of: request.patterns.patterns)
        if options.block != nil {
            // While it waits, each written key is compared with them, as with those of a watch.
            try settings.options.checkGlobs(request.patterns.globCount, context)
            try settings.options.checkPatterns(request.patterns.patterns.count, context)
        }
        let since = options.since
        let current = context.core.revisions.durable
        guard try isOfThisStore(options.epoch, context),
            since <= max(current, context.core.revisions.provisional),
            since >= current || services.registry.store.hasHistory,
            !services.access.isBefore(since, context.connection),
            // Keys in memory have no history.
            since >= current || !context.core.hasForgotten(request.patterns, after: since)
        else {
            return try writeGap(request, &context)
        }
        guard since <= current else {
            // The revision may be of an early reply: wait until it is durable, then nothing is
            // after it.
            context.receipt.noteRead(since)
            return writeNothing(request, context)
        }
        if let block = options.block { self.block(request, milliseconds: block, context) }
        if since < current {
            let job = ChangesJob(request, through: current, for: context.connection)
            services.history.read(job, for: context.connection)
        } else if let blocked = context.connection.inbound.blocked {
            context.connection.inbound.awaitsLateReply = true
            beginWaiting(blocked)
        } else {
            writeNothing(request, context)
        }
    }

    /// Whether the caller's epoch is that of this store; 0 matches none.
    private func isOfThisStore(
        _ text: Bytes?,
        _ context: borrowing CommandContext
    ) throws(StateError) -> Bool {
        guard let text else { return true }
        guard !(text.count == 1 && text[0] == UInt8(ascii: "0")) else { return false }
        guard text.count <= 16, let epoch = Epoch(text.text) else {
            throw StateError(
                .err,
                "EPOCH \(StateError.quoted(text)) is not an epoch: expected 16 hexadecimal "
                    + "digits, as in STATE.STATUS, or 0 for none"
            )
        }
        return epoch == context.core.epoch
    }

    /// Writes the reply that nothing has changed since.
    private func writeNothing(
        _ request: ChangesRequest,
        _ context: borrowing CommandContext
    ) {
        let reply = request.makeReply()
        reply.write(to: &context.output, epoch: request.includesEpoch ? context.core.epoch : nil)
    }

    /// Writes the durable state instead of changes that are no longer kept.
    func writeGap(_ request: ChangesRequest, _ context: inout CommandContext) throws(StateError) {
        let listed = Listing.Request(
            patterns: request.patterns,
            byteLimit: request.byteLimit,
            subject: context.connection.subject,
            isOfWatch: true,
            form: .row(.entries),
            advice:
                "the changes since revision \(request.options.since) are no longer kept, and the "
                + "complete state is too large for a reply; ask for fewer keys at once"
        )
        try listings.list(listed, &context) { listing, context in
            context.output.writeArray(request.includesEpoch ? 4 : 3)
            context.output.writeBulk("gap")
            context.output.writeInteger(context.core.revisions.durable)
            context.output.writeArray(listing.listedCount)
            listing.writeRows(to: &context.output)
            if request.includesEpoch { context.output.writeBulk(context.core.epoch.description) }
        }
    }

    // MARK: Waiting

    private func block(
        _ request: ChangesRequest,
        milliseconds: Int64,
        _ context: borrowing CommandContext
    ) {
        let deadline = milliseconds == 0 ? .max : SystemClock.monotonicMilliseconds() + milliseconds
        let list = services.waitingForChanges
        context.connection.share.account?.noteWatched(request.patterns, by: 1)
        context.connection.inbound.blocked = BlockedChanges(
            request,
            until: deadline,
            for: context.connection,
            in: context.core
        ) { list.wake($0) }
    }

    /// The read of the history is over: replies with commits that came meanwhile, or waits.
    func beginWaiting(_ blocked: BlockedChanges) {
        blocked.isWaiting = true
        services.waitingForChanges.add(blocked)
        if blocked.hasSomething { services.waitingForChanges.wake(blocked) }
    }

    /// Answers those that have a commit, or whose time has passed.
    func answerBlocked(_ core: KeyspaceCore) {
        for blocked in services.waitingForChanges.takeReady() {
            let connection = blocked.connection
            unblock(connection, core)
            connection.inbound.awaitsLateReply = false
            services.gate.answer(connection, core) { (context) throws(StateError) in
                guard services.access.isStale(blocked.request.accessCount, connection) else {
                    return try blocked.writeReply(core)
                }
                try writeGap(blocked.request, &context)
            }
        }
    }

    /// Ends the waiting of a connection, without a reply.
    func unblock(_ connection: Connection, _ core: KeyspaceCore) {
        guard let blocked = connection.inbound.blocked else { return }
        connection.inbound.blocked = nil
        connection.share.account?.noteWatched(blocked.request.patterns, by: -1)
        blocked.end(in: core)
        services.waitingForChanges.remove(blocked)
    }
}
