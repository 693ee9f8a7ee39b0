import StateEngine
import StateWire

/// MULTI, EXEC, DISCARD and WATCH: one commit, all or nothing.
extension Dispatcher {
    /// Commands that are carried out between MULTI and EXEC, not queued.
    static func runsInside(_ verb: Verb) -> Bool {
        switch verb.name {
        case .multi, .exec, .discard, .watch, .quit, .reset: true
        default: false
        }
    }

    func begin(_ connection: Connection) throws(StateError) {
        guard connection.transaction == nil else {
            throw StateError(.err, "MULTI calls can not be nested")
        }
        connection.transaction = QueuedTransaction()
        connection.output.writeOK()
    }

    func discard(_ connection: Connection) throws(StateError) {
        guard connection.transaction != nil else {
            throw StateError(.err, "DISCARD without MULTI")
        }
        connection.transaction = nil
        connection.watchedKeys = []
        connection.output.writeOK()
    }

    func watchKeys(
        _ keys: Arguments,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    )
        throws(StateError)
    {
        guard connection.transaction == nil else {
            throw StateError(.err, "WATCH inside MULTI is not allowed")
        }
        guard connection.watchedKeys.count + keys.count <= options.watchCount else {
            throw StateError(.limit, "WATCH of more than \(options.watchCount) keys")
        }
        let subject = restriction(connection, core)
        var watched: [Connection.WatchedKey] = []
        for index in 0..<keys.count {
            let revision = try core.look(at: keys[index], for: subject, &receipt)?.revision ?? 0
            watched.append(Connection.WatchedKey(key: Array(keys[index]), revision: revision))
        }
        connection.watchedKeys += watched
        connection.watchedKeyByteCount += watched.reduce(0) { $0 + $1.key.count + 64 }
        // The reply reports nothing of what was seen.
        receipt.waiveReads()
        connection.output.writeOK()
    }

    /// Adds a command of `byteCount` bytes to the transaction, or refuses it and with it the transaction.
    func queue(
        _ verb: Verb,
        _ arguments: Arguments,
        byteCount: Int,
        in transaction: QueuedTransaction,
        _ files: FileContainers?
    )
        throws(StateError)
    {
        do throws(StateError) {
            switch verb.name {
            case .hello, .auth, .client, .stateWatch, .stateUnwatch, .stateHandler, .stateHandlers:
                throw StateError(.err, "'\(verb.name.rawValue)' is not allowed in a transaction")
            default: break
            }
            let limit = options.limits.transactionByteCount
            guard transaction.byteCount + byteCount <= limit else {
                throw StateError(.tooBig, "a transaction of more than \(limit) bytes")
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

    /// A command of a transaction that could not even be read.
    func refuseTransaction(of connection: Connection) { connection.transaction?.refuse() }

    func execute(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        guard let transaction = connection.transaction else {
            throw StateError(.err, "EXEC without MULTI")
        }
        let watched = connection.watchedKeys
        connection.transaction = nil
        connection.watchedKeys = []
        guard !transaction.isRefused else {
            throw StateError(
                .executionAborted,
                "Transaction discarded because of previous errors."
            )
        }
        for watch in watched {
            // One that the connection may not read any more counts as absent, whatever becomes of it.
            let revision = watch.key.withUnsafeBytes {
                core.read($0, for: restriction(connection, core), &receipt)?.revision ?? 0
            }
            guard revision == watch.revision else {
                connection.output.writeNullArray(connection.version)
                return
            }
        }
        let stepLimit = stepLimit(connection, core)
        guard transaction.steps <= stepLimit else { throw tooManySteps(stepLimit) }
        visitsLeft = stepLimit
        isExecuting = true
        defer { isExecuting = false }
        core.begin(cause(of: connection, core), at: now, by: restriction(connection, core))
        do throws(StateError) {
            try runQueued(transaction, connection, core, &receipt)
        } catch {
            core.rollBack()
            undoChannels(of: connection, core)
            throw error
        }
        finish(connection, core, &receipt, waitingFor: .storage)
    }

    private func runQueued(
        _ transaction: QueuedTransaction,
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt
    ) throws(StateError) {
        let start = connection.output.count
        connection.output.writeArray(transaction.count)
        for (index, queued) in transaction.commands.enumerated() {
            do throws(StateError) {
                try run(queued.command, for: connection, in: core, &receipt)
                try checkReply(connection.output.count - start)
            } catch {
                throw StateError(
                    .executionAborted,
                    "Transaction undone: command \(index + 1), '\(queued.name.rawValue)': \(error)"
                )
            }
        }
    }
}
