import CLinux
import StateEngine
import StateWire

/// Gives a connection the session that it had in the last process.
///
/// Nothing is sent to its client, except what it missed: its watches begin where they were, as with
/// FROM and EPOCH.
struct Continuation {
    private let connection: Connection
    private let record: HandoverRecord
    private let services: Services
    private let dispatcher: Dispatcher
    private let core: KeyspaceCore

    init(
        of connection: Connection,
        _ record: HandoverRecord,
        _ services: Services,
        _ dispatcher: Dispatcher,
        _ core: KeyspaceCore
    ) {
        (self.connection, self.record, self.services) = (connection, record, services)
        (self.dispatcher, self.core) = (dispatcher, core)
    }

    /// - Throws: if the session contradicts itself; part of it may be restored, so that the
    ///   connection has to end.
    func restore(_ session: SessionRecord) throws(DamagedRecord) {
        // Order matters: this may begin in the midst of a reply, and the rest may send something.
        session.output.withUnsafeBytes { connection.outbound.bytes.append($0) }
        connection.session.version = session.version
        connection.session.client.name = session.name
        connection.session.client.library = session.library
        connection.session.client.libraryVersion = session.libraryVersion
        connection.session.silence = Session.Silence(number: session.silence)
        if let queue = session.transaction { try restore(queue) }
        restore(session.watchedKeys)
        for name in session.handlers { try claim(String(decoding: name, as: UTF8.self)) }
        for subscription in session.subscriptions {
            subscription.name.withUnsafeBytes {
                services.channels.subscribe(connection, to: $0, subscription.kind, core)
            }
        }
        connection.watches.lastNumber = session.lastWatch
        for watch in session.watches { try restore(watch) }
        if let tracking = session.tracking { services.tracking.resume(connection, tracking, core) }
        try restoreHolders(session)
        session.input.withUnsafeBytes { connection.inbound.bytes.append($0) }
    }

    private func restore(_ queue: SessionRecord.Queue) throws(DamagedRecord) {
        let transaction = QueuedTransaction()
        connection.session.transaction = transaction
        if queue.isRefused { return transaction.refuse() }
        var isDamaged = false
        queue.frames.withUnsafeBytes { frames in
            var parser = FrameParser(limits: .none)
            var taken = 0
            while taken < frames.count {
                let rest = frames.slice(taken, frames.count)
                guard case .frame(let arguments, let byteCount)? = try? parser.next(rest),
                    let verb = Verb.named(arguments[0]),
                    verb.accepts(argumentCount: arguments.count)
                else {
                    isDamaged = true
                    return
                }
                // What is not allowed any more refuses the transaction, as if it came now.
                try? dispatcher.transactions.queue(
                    verb,
                    arguments,
                    byteCount: byteCount,
                    in: transaction,
                    core.files
                )
                taken += byteCount
            }
        }
        if isDamaged { throw DamagedRecord() }
    }

    private func restore(_ keys: [SessionRecord.WatchedKey]) {
        connection.session.watchedKeys = keys.map { watched in
            Session.WatchedKey(
                key: watched.key,
                revision: watched.revision,
                absence: watched.revision == 0
                    ? watched.key.withUnsafeBytes { core.watchAbsence(of: $0) } : nil
            )
        }
        connection.session.watchedKeyByteCount = keys.reduce(0) {
            $0 + Session.byteCount(ofWatched: $1.key)
        }
    }

    private func claim(_ handler: String) throws(DamagedRecord) {
        guard let parts = HandlerRecord.parts(of: handler),
            parts.uid == Int64(connection.peer.uid), services.registry.handlers[handler] == nil
        else { throw DamagedRecord() }
        services.registry.handlers[handler] = connection
        connection.session.handlers.append(handler)
    }

    private func restore(_ watch: WatchRecord) throws(DamagedRecord) {
        guard connection.session.version == .resp3, connection.watches.all[watch.number] == nil,
            watch.number <= connection.watches.lastNumber, !watch.patterns.isEmpty
        else { throw DamagedRecord() }
        var patterns: [Pattern] = []
        for bytes in watch.patterns {
            let pattern = bytes.withUnsafeBytes { try? Pattern($0) }
            guard let pattern else { throw DamagedRecord() }
            patterns.append(pattern)
        }
        let set = PatternSet(patterns)
        let watcher = dispatcher.watches.add(
            set,
            WatchFormat(number: watch.number, options: watch.options),
            start(watch),
            services.quotas.limits(of: set, core),
            to: connection,
            core
        )
        if case .snapshot(let passed) = watch.place, case .snapshot = watcher.watcher.phase {
            watcher.watcher.continueSnapshot(after: passed)
        }
    }

    private func start(_ watch: WatchRecord) -> Watcher.Start {
        switch watch.place {
        case .after(let revision):
            let isHidden = services.access.isBefore(revision, connection)
            return isHidden ? .gap : .after(revision, record.epoch)
        case .gap: return .gap
        case .snapshot:
            // The pieces that were delivered are the state only if nothing has changed since.
            let isSame = record.epoch == core.epoch && record.durable == core.revisions.durable
            return isSame && !services.access.isBefore(record.durable, connection)
                ? .snapshot : .gap
        }
    }

    private func restoreHolders(_ session: SessionRecord) throws(DamagedRecord) {
        if let stored = session.holder {
            guard let holder = Holder(stored: stored), holder.lifetime == .connection,
                holder.uid == connection.peer.uid
            else { throw DamagedRecord() }
            connection.holders?.resume(holder)
        }
        if session.isOfWatchedProcess { _ = try? connection.holders?.holder(.process) }
    }
}
