import StateEngine
import StateWire

/// MULTI, EXEC, DISCARD and WATCH: one commit, all or nothing.
struct TransactionCommands {
    let settings: Settings
    let channels: Channels

    /// Commands that run at once between MULTI and EXEC instead of being queued.
    static func runsInside(_ verb: Verb) -> Bool {
        switch verb.name {
        case .multi, .exec, .discard, .watch, .quit, .reset: true
        default: false
        }
    }

    func begin(_ context: borrowing CommandContext) throws(StateError) {
        guard context.connection.session.transaction == nil else {
            throw StateError(.err, "MULTI calls can not be nested")
        }
        context.connection.session.transaction = QueuedTransaction()
        context.output.writeOK()
    }

    func discard(_ context: borrowing CommandContext) throws(StateError) {
        guard context.connection.session.transaction != nil else {
            throw StateError(.err, "DISCARD without MULTI")
        }
        context.connection.session.transaction = nil
        context.connection.session.forgetWatchedKeys(context.core)
        context.output.writeOK()
    }

    func watchKeys(_ keys: Arguments, _ context: inout CommandContext) throws(StateError) {
        let connection = context.connection
        guard connection.session.transaction == nil else {
            throw StateError(.err, "WATCH inside MULTI is not allowed")
        }
        guard connection.session.watchedKeys.count + keys.count <= settings.options.watchCount
        else {
            throw StateError(
                .limit,
                "WATCH of more than \(settings.options.watchCount) keys, the limit (limits.watches)"
            )
        }
        var watched: [Session.WatchedKey] = []
        for index in 0..<keys.count {
            let record = try context.look(at: keys[index])
            let watch = Session.WatchedKey(
                key: Array(keys[index]),
                revision: record?.revision ?? 0,
                absence: nil
            )
            watched.append(watch)
        }
        // From here on nothing is refused.
        connection.session.watchedKeys += watched.map { watch in
            guard watch.revision == 0 else { return watch }
            return Session.WatchedKey(
                key: watch.key,
                revision: 0,
                absence: watch.key.withUnsafeBytes { context.core.watchAbsence(of: $0) }
            )
        }
        connection.session.watchedKeyByteCount += watched.reduce(0) {
            $0 + Session.byteCount(ofWatched: $1.key)
        }
        // The reply reveals nothing of what was read.
        context.receipt.waiveReads()
        context.output.writeOK()
    }

    func unwatchKeys(_ context: borrowing CommandContext) {
        context.connection.session.forgetWatchedKeys(context.core)
        context.output.writeOK()
    }

    /// Adds a command of `byteCount` bytes to the transaction, or refuses it and with it the
    /// transaction.
    @inline(never)
    func queue(
        _ verb: Verb,
        _ arguments: Arguments,
        byteCount: Int,
        in transaction: QueuedTransaction,
        _ files: FileContainers?
    ) throws(StateError) {
        do throws(StateError) {
            switch verb.name {
            case .stateWatch, .stateUnwatch, .stateHandler, .stateHandlers, .monitor:
                throw StateError(.err, "'\(verb.name.rawValue)' is not allowed in a transaction")
            default: break
            }
            let limit = settings.options.limits.transactionByteCount
            guard transaction.byteCount + byteCount <= limit else {
                throw StateError(.tooBig, "a transaction can have at most \(limit) bytes")
            }
            try transaction.append(verb, arguments, byteCount: byteCount)
        } catch {
            transaction.refuse()
            throw error
        }
        if let files, verb.isWrite, !transaction.isRefused {
            transaction.files.add(verb, arguments, in: files)
        }
    }

    /// EXEC: runs the queued commands with `run`.
    func execute(
        _ context: inout CommandContext,
        _ run: (QueuedTransaction.Queued, inout CommandContext) throws(StateError) -> Void
    ) throws(StateError) {
        let connection = context.connection
        guard let transaction = connection.session.transaction else {
            throw StateError(.err, "EXEC without MULTI")
        }
        let watched = connection.session.watchedKeys
        connection.session.transaction = nil
        connection.session.forgetWatchedKeys(context.core)
        guard !transaction.isRefused else {
            throw StateError(
                .executionAborted,
                "Transaction discarded because of previous errors."
            )
        }
        for watch in watched {
            // A key that the connection may not read any more counts as absent.
            let revision = watch.key.withUnsafeBytes { context.read($0)?.revision ?? 0 }
            let hasChanged =
                watch.absence?.hasChanged(for: context.restriction, in: context.core) ?? false
            guard revision == watch.revision, !hasChanged else {
                context.output.writeNullArray(context.version)
                return
            }
        }
        let stepLimit = settings.options.stepLimit(context)
        guard transaction.steps <= stepLimit else {
            throw settings.options.tooManySteps(stepLimit)
        }
        do throws(StateError) {
            try context.execute(visitCount: stepLimit, mayWrite: transaction.hasWrites) {
                (context) throws(StateError) in
                if context.core.mirrored != nil { context.noteRead(watched) }
                try runQueued(transaction, &context) { (queued, context) throws(StateError) in
                    try run(queued, &context)
                    guard context.execution.map({ $0.visitsLeft >= 0 }) ?? true else {
                        throw settings.options.tooManySteps(stepLimit)
                    }
                }
            }
        } catch {
            channels.undo(&context)
            context.offer?.note(transaction, watched)
            throw error
        }
        if context.offer != nil {
            channels.undo(&context)
            context.offer?.note(transaction, watched)
        }
    }

    private func runQueued(
        _ transaction: QueuedTransaction,
        _ context: inout CommandContext,
        _ run: (QueuedTransaction.Queued, inout CommandContext) throws(StateError) -> Void
    ) throws(StateError) {
        let start = context.output.count
        context.output.writeArray(transaction.count)
        for (index, queued) in transaction.commands.enumerated() {
            do throws(StateError) {
                try run(queued, &context)
                try settings.options.checkReply(context.output.count - start)
            } catch {
                throw StateError(
                    .executionAborted,
                    "Transaction undone: command \(index + 1), '\(queued.name.rawValue)': \(error)"
                )
            }
        }
    }
}

extension CommandContext {
    /// Ends EXEC after its reply.
    mutating func endExecution() {
        if execution?.subscriptionsBefore != nil {
            connection.outbound.isConfirmationHeld = !connection.outbound.held.isEmpty
        }
        execution = nil
        if connection.session.client.isNew { renewCause() }
    }
}
