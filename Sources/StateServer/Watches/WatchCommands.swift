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
        try settings.options.checkPatterns(set.patterns.count, context)
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
        connection.share.account?.noteWatched(set, by: 1)
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
        connection.share.account?.noteWatched(patterns, by: -1)
        core.hub.remove(watcher.watcher)
    }

    // MARK: STATE.WATCHES

    func list(_ context: inout CommandContext) throws(StateError) {
        let (asking, version, isAdmin) = (context.connection, context.version, context.isAdmin)
        let listing = ConnectionListing(
            registry,
            byteLimit: settings.options.replyByteCount,
            visitLimit: context.execution?.visitsLeft ?? .max,
            advice: "end some watches"
        ) { client, core, rows in
            guard isAdmin || asking.isOfSameUser(as: client) else { return 0 }
            let watchers = client.watches.all.values.sorted { $0.number < $1.number }
            let isOwn = asking.isOfSameUser(as: client)
            let visibility = core.visibility(of: asking.subject)
            for watcher in watchers {
                WatchCommands.write(watcher, of: client, version, core, to: &rows) {
                    isOwn || visibility.mayReveal(patternOf: $0)
                }
            }
            return watchers.count
        }
        try services.listings.list(listing, &context) { listing, context in
            context.output.writeArray(listing.count)
            listing.writeRows(to: &context.output)
        }
        context.execution?.visitsLeft -= listing.visitedCount
    }

    private static func write(
        _ watcher: ConnectionWatcher,
        of client: Connection,
        _ version: ProtocolVersion,
        _ core: KeyspaceCore,
        to rows: inout ByteBuffer,
        where isShown: (Pattern) -> Bool
    ) {
        let position = watcher.watcher.deliveredThrough(in: core) ?? 0
        let waiting = watcher.watcher.waiting
        rows.writeMap(13, version)
        rows.writeField("client", Int64(client.number))
        rows.writeField("watch", Int64(watcher.number))
        rows.writeField("pid", Int64(client.peer.pid))
        rows.writeField("uid", Int64(client.peer.uid))
        rows.writeBulk("name")
        rows.writeBulk(client.session.client.name)
        rows.writeBulk("patterns")
        let patterns = watcher.watcher.patterns.patterns.filter(isShown)
        rows.writeArray(patterns.count)
        for pattern in patterns { rows.writeBulk(pattern.bytes) }
        rows.writeBulk("options")
        let words = watcher.format.options.words
        rows.writeArray(words.count)
        for word in words { rows.writeBulk(word) }
        rows.writeField("state", watcher.group.rawValue)
        rows.writeField("revision", position)
        rows.writeField("lag", core.revisions.durable - position)
        rows.writeField("waiting", Int64(watcher.waitingByteCount))
        rows.writeField("pending", Int64(waiting?.pendingCount ?? 0))
        rows.writeField("values", Int64(waiting?.valueCount ?? 0))
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
