import CLinux
import StateEngine
import StateWire

/// STATE.WATCH, STATE.UNWATCH and STATE.WATCHES.
struct WatchCommands {
    private let services: Services
    private let settings: Settings
    private let registry: Registry

    init(_ services: Services) {
        self.services = services
        (settings, registry) = (services.settings, services.registry)
    }

    func watch(
        _ patterns: Arguments,
        _ chosen: Command.WatchOptions,
        _ resume: Command.Resume?,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard context.version == .resp3 else {
            throw StateError(.err, "STATE.WATCH needs HELLO 3; use STATE.CHANGES")
        }
        guard context.connection.watches.all.count < settings.options.watchCount else {
            throw StateError(
                .limit,
                "more than \(settings.options.watchCount) watches of one client (limits.watches)"
            )
        }
        let set = try settings.options.patternSet(patterns)
        try context.requireSight(.watch, of: set.patterns)
        let limit = settings.options.watchPatternCount
        guard context.connection.watches.patternCount + patterns.count <= limit else {
            throw StateError(.limit, "more than \(limit) patterns in all watches of one client")
        }
        let limits = try services.quotas.checkWatches(
            set,
            of: context.connection.peer.uid,
            context.core
        )
        try settings.options.checkGlobs(set.globCount, context)
        context.connection.watches.lastNumber += 1
        let watcher = add(
            set,
            WatchFormat(number: context.connection.watches.lastNumber, options: chosen),
            start(chosen, resume, context),
            limits,
            to: context.connection,
            context.core
        )
        context.output.writeMap(3, .resp3)
        context.output.writeField("watch", Int64(watcher.number))
        context.output.writeField("revision", context.core.revisions.durable)
        context.output.writeBulk("epoch")
        context.output.writeBulk(context.core.epoch.description)
        if let mirror = services.mirror, !mirror.isCurrent,
            set.patterns.contains(where: mirror.options.prefix.meets)
        {
            let revision = context.core.revisions.durable
            watcher.format.writeNotice("state.away", revision, to: &context.output)
        }
    }

    /// Adds a watch, which was checked.
    func add(
        _ set: PatternSet,
        _ format: WatchFormat,
        _ start: Watcher.Start,
        _ limits: Set<WatchTally.Limit>,
        to connection: Connection,
        _ core: KeyspaceCore
    ) -> ConnectionWatcher {
        connection.share.account?.globCount += set.globCount
        connection.watches.patternCount += set.patterns.count
        connection.watches.byteCount += set.byteCount
        let watcher = ConnectionWatcher(
            set,
            format,
            start,
            connection: connection,
            services: services,
            in: core
        )
        watcher.limits = limits
        services.quotas.tally.add(limits, of: connection.peer.uid)
        connection.watches.all[watcher.number] = watcher
        registry.counts.watches += 1
        core.hub.add(watcher.watcher)
        if watcher.watcher.canAdvance { registry.addAdvancing(connection) }
        return watcher
    }

    private func start(
        _ chosen: Command.WatchOptions,
        _ resume: Command.Resume?,
        _ context: borrowing CommandContext
    ) -> Watcher.Start {
        guard let resume else { return chosen.contains(.snapshot) ? .snapshot : .now }
        guard !services.access.isBefore(resume.revision, context.connection) else { return .gap }
        guard let text = resume.epoch else { return .after(resume.revision, nil) }
        // An invalid epoch is not the epoch of this store, either.
        return Epoch(text.text).map { .after(resume.revision, $0) } ?? .gap
    }

    func unwatch(_ number: Int64, _ context: borrowing CommandContext) throws(StateError) {
        guard let watcher = context.connection.watches.all[Int(number)] else {
            throw StateError(.err, "this connection has no watch \(number)")
        }
        take(watcher, of: context.connection, context.core)
        // It would have received the missed commits later; without them it needs a gap.
        switch watcher.watcher.phase {
        case .synced, .catchingUp, .blocked:
            if watcher.watcher.isBehind {
                watcher.receive(.gap(context.core.revisions.durable), in: context.core)
            }
        // Without `state.synced` the client knows that the snapshot is incomplete.
        case .snapshot: break
        }
        watcher.watcher.forget()
        context.output.writeOK()
    }

    /// Ends watches of a connection that ends itself, `count` at most.
    func end(_ connection: Connection, _ core: KeyspaceCore, atMost count: Int = .max) {
        for watcher in Array(connection.watches.all.values.prefix(count)) {
            take(watcher, of: connection, core)
            watcher.watcher.forget()
        }
    }

    private func take(
        _ watcher: ConnectionWatcher,
        of connection: Connection,
        _ core: KeyspaceCore
    ) {
        let patterns = watcher.watcher.patterns
        connection.watches.all[watcher.number] = nil
        registry.counts.watches -= 1
        services.quotas.tally.remove(watcher.limits, of: connection.peer.uid)
        connection.watches.patternCount -= patterns.patterns.count
        connection.watches.byteCount -= patterns.byteCount
        connection.share.account?.globCount -= patterns.globCount
        core.hub.remove(watcher.watcher)
    }

    // MARK: STATE.WATCHES

    func list(_ context: borrowing CommandContext) throws(StateError) {
        let start = context.output.count
        let clients = registry.connections.filter { context.maySee($0) }
        context.output.writeArray(clients.reduce(0) { $0 + $1.watches.all.count })
        for client in clients.sorted(by: { $0.number < $1.number }) {
            for watcher in client.watches.all.values.sorted(by: { $0.number < $1.number }) {
                write(watcher, of: client, context)
                try settings.options.checkReply(context.output.count - start)
            }
        }
    }

    private func write(
        _ watcher: ConnectionWatcher,
        of client: Connection,
        _ context: borrowing CommandContext
    ) {
        let position = watcher.watcher.deliveredThrough(in: context.core) ?? 0
        let waiting = watcher.watcher.waiting
        context.output.writeMap(13, context.version)
        context.output.writeField("client", Int64(client.number))
        context.output.writeField("watch", Int64(watcher.number))
        context.output.writeField("pid", Int64(client.peer.pid))
        context.output.writeField("uid", Int64(client.peer.uid))
        context.output.writeBulk("name")
        context.output.writeBulk(client.session.client.name)
        context.output.writeBulk("patterns")
        let isOwn = context.connection.isOfSameUser(as: client)
        let patterns = watcher.watcher.patterns.patterns.filter {
            isOwn || context.mayName($0)
        }
        context.output.writeArray(patterns.count)
        for pattern in patterns { context.output.writeBulk(pattern.bytes) }
        context.output.writeBulk("options")
        let words = watcher.format.options.words
        context.output.writeArray(words.count)
        for word in words { context.output.writeBulk(word) }
        context.output.writeField("state", watcher.group.rawValue)
        context.output.writeField("revision", position)
        context.output.writeField("lag", context.core.revisions.durable - position)
        context.output.writeField("waiting", Int64(watcher.waitingByteCount))
        context.output.writeField("pending", Int64(waiting?.pendingCount ?? 0))
        context.output.writeField("values", Int64(waiting?.valueCount ?? 0))
    }
}

extension Registry {
    /// How many watches are in each group, by the name of STATE.STATUS.
    var watchCounts: [(StaticString, Int64)] {
        var counts: [ConnectionWatcher.Group: Int64] = [:]
        for connection in connections {
            for watcher in connection.watches.all.values { counts[watcher.group, default: 0] += 1 }
        }
        return [
            ("watches_synced", counts[.synced] ?? 0),
            ("watches_catching_up", counts[.catchingUp] ?? 0),
            ("watches_blocked", counts[.blocked] ?? 0),
        ]
    }
}

extension PatternSet {
    /// The approximate memory of a watch of them: each is kept as bytes and in parsed form.
    var byteCount: Int {
        patterns.reduce(1_024) { $0 + 3 * $1.bytes.count + 200 }
    }
}
