import StateEngine
import StateWire

/// STATE.CHANGES: the commits since a revision, for clients that ask.
extension Dispatcher {
    func stateChanges(
        _ patterns: Arguments,
        _ options: Command.ChangesOptions,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let request = ChangesRequest(
            patterns: try patternSet(patterns),
            options: ChangesRequest.Options(options),
            version: connection.version,
            byteLimit: self.options.replyByteCount,
            subject: connection.subject,
            view: historyRules.visibility(of: connection),
            accessCount: access.count,
            tellsEpoch: options.epoch != nil
        )
        try requireSight(.watch, of: request.patterns.patterns, connection, core)
        let since = options.since
        let current = core.revisions.durable
        guard try isOfThisStore(options.epoch, core),
            since <= max(current, core.revisions.provisional),
            since >= current || registry.hasHistory, !isBeforeAccess(since, connection),
            // The history has nothing of keys in memory.
            since >= current || !core.hasForgotten(request.patterns, after: since)
        else {
            return try writeGap(request, connection, core, &receipt)
        }
        guard since <= current else {
            // A commit that its writer was told of early: nothing is after it once it is durable.
            receipt.noteRead(since)
            return writeNothing(request, connection, core)
        }
        if let block = options.block { self.block(connection, request, milliseconds: block, core) }
        if since < current {
            read(ChangesJob(request, through: current, for: connection), for: connection)
        } else if let blocked = connection.blocked {
            connection.awaitsLateReply = true
            beginWaiting(blocked)
        } else {
            writeNothing(request, connection, core)
        }
    }

    /// Whether the store that the caller knows is this one; 0 is none.
    private func isOfThisStore(_ text: Bytes?, _ core: KeyspaceCore) throws(StateError) -> Bool {
        guard let text else { return true }
        guard !(text.count == 1 && text[0] == UInt8(ascii: "0")) else { return false }
        guard text.count <= 16, let epoch = Epoch(text.text) else {
            throw StateError(
                .err,
                "EPOCH \(StateError.quoted(text)) is no epoch: 16 hexadecimal digits as STATE.STATUS "
                    + "tells them, or 0 for none"
            )
        }
        return epoch == core.epoch
    }

    /// Nothing has changed since.
    private func writeNothing(
        _ request: ChangesRequest,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) {
        let reply = request.makeReply()
        reply.write(to: &connection.output, epoch: request.tellsEpoch ? core.epoch : nil)
    }

    /// The state itself, for whom the changes since then are not to be had: all that is durable.
    func writeGap(
        _ request: ChangesRequest,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let listed = Listing.Request(
            patterns: request.patterns,
            byteLimit: request.byteLimit,
            subject: request.subject,
            isOfWatch: true,
            form: .row(.entries),
            advice:
                "the changes since revision \(request.options.since) are no longer kept, and this is the "
                + "whole state; ask for fewer keys at once"
        )
        try list(listed, for: connection, core, &receipt) { listing, core, _ in
            connection.output.writeArray(request.tellsEpoch ? 4 : 3)
            connection.output.writeBulk("gap")
            connection.output.writeInteger(core.revisions.durable)
            connection.output.writeArray(listing.listedCount)
            listing.writeRows(to: &connection.output)
            if request.tellsEpoch { connection.output.writeBulk(core.epoch.description) }
        }
    }

    // MARK: Waiting

    private func block(
        _ connection: Connection,
        _ request: ChangesRequest,
        milliseconds: Int64,
        _ core: KeyspaceCore
    ) {
        let deadline = milliseconds == 0 ? .max : SystemClock.monotonicMilliseconds() + milliseconds
        let list = waitingForChanges
        connection.blocked = BlockedChanges(
            request,
            until: deadline,
            for: connection,
            in: core
        ) { list.wake($0) }
    }

    /// Nothing is read for it any more: it is answered with what came meanwhile, or waits.
    func beginWaiting(_ blocked: BlockedChanges) {
        blocked.isWaiting = true
        waitingForChanges.add(blocked)
        if blocked.hasSomething { waitingForChanges.wake(blocked) }
    }

    /// Answers those for whom something has come, or whose time is over.
    func answerBlocked(_ core: KeyspaceCore) {
        for blocked in waitingForChanges.takeReady() {
            let connection = blocked.connection
            unblock(connection, core)
            connection.awaitsLateReply = false
            answer(connection, core) { (receipt) throws(StateError) in
                guard isStale(blocked.request.accessCount, connection) else {
                    return try blocked.writeReply(core)
                }
                try writeGap(blocked.request, connection, core, &receipt)
            }
        }
    }

    /// Ends the waiting of a connection, without an answer.
    func unblock(_ connection: Connection, _ core: KeyspaceCore) {
        guard let blocked = connection.blocked else { return }
        connection.blocked = nil
        blocked.end(in: core)
        waitingForChanges.remove(blocked)
    }
}
