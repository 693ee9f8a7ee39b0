import CLinux
import StateEngine
import StateWire

/// STATE.WATCH and STATE.UNWATCH.
extension Dispatcher {
    func stateWatch(
        _ patterns: Arguments,
        _ wanted: Command.WatchOptions,
        _ resume: Command.Resume?,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        guard connection.version == .resp3 else {
            throw StateError(.err, "STATE.WATCH needs HELLO 3; use STATE.CHANGES")
        }
        guard connection.watchers.count < options.watchCount else {
            throw StateError(.limit, "more than \(options.watchCount) watches of one client")
        }
        let set = try patternSet(patterns)
        try requireSight(.watch, of: set.patterns, connection, core)
        let limit = options.watchPatternCount
        guard connection.watchPatternCount + patterns.count <= limit else {
            throw StateError(.limit, "more than \(limit) patterns of all watches of one client")
        }
        let limits = try checkWatches(set, of: connection.peer.uid, core)
        try checkGlobs(set.globCount, connection, core)
        connection.account?.globCount += set.globCount
        connection.watchPatternCount += patterns.count
        connection.watchByteCount += set.byteCount
        connection.lastWatch += 1
        let watcher = ConnectionWatcher(
            set,
            WatchFormat(number: connection.lastWatch, options: wanted),
            start(wanted, resume, connection),
            connection: connection,
            dispatcher: self,
            in: core
        )
        watcher.limits = limits
        watchTally.add(limits, of: connection.peer.uid)
        connection.watchers[watcher.number] = watcher
        registry.watchCount += 1
        core.hub.add(watcher.watcher)
        if watcher.watcher.canAdvance { registry.addAdvancing(connection) }
        connection.output.writeMap(3, .resp3)
        connection.output.writeField("watch", Int64(watcher.number))
        connection.output.writeField("revision", core.revisions.durable)
        connection.output.writeBulk("epoch")
        connection.output.writeBulk(core.epoch.description)
    }

    private func start(
        _ wanted: Command.WatchOptions,
        _ resume: Command.Resume?,
        _ connection: Connection
    ) -> Watcher.Start {
        guard let resume else { return wanted.contains(.snapshot) ? .snapshot : .now }
        guard !isBeforeAccess(resume.revision, connection) else { return .gap }
        guard let text = resume.epoch else { return .after(resume.revision, nil) }
        // What is no epoch at all is none of this store either.
        return Epoch(text.text).map { .after(resume.revision, $0) } ?? .gap
    }

    func stateUnwatch(
        _ number: Int64,
        _ connection: Connection,
        _ core: KeyspaceCore
    )
        throws(StateError)
    {
        guard let watcher = connection.watchers.removeValue(forKey: Int(number)) else {
            throw StateError(.err, "no watch \(number) on this connection")
        }
        registry.watchCount -= 1
        watchTally.remove(watcher.limits, of: connection.peer.uid)
        connection.watchPatternCount -= watcher.watcher.patterns.patterns.count
        connection.account?.globCount -= watcher.watcher.patterns.globCount
        connection.watchByteCount -= watcher.watcher.patterns.byteCount
        core.hub.remove(watcher.watcher)
        // What it missed it would have been told of later, and no gap is silent.
        switch watcher.watcher.phase {
        case .synced, .catchingUp, .blocked:
            if watcher.watcher.isBehind { watcher.receive(.gap(core.revisions.durable), in: core) }
        // That the state is not whole its `synced` would have said.
        case .snapshot: break
        }
        watcher.watcher.forget()
        connection.output.writeOK()
    }

    func endWatches(_ connection: Connection, _ core: KeyspaceCore) {
        for watcher in connection.watchers.values {
            core.hub.remove(watcher.watcher)
            watcher.watcher.forget()
            watchTally.remove(watcher.limits, of: connection.peer.uid)
            connection.account?.globCount -= watcher.watcher.patterns.globCount
        }
        connection.watchPatternCount = 0
        connection.watchByteCount = 0
        registry.watchCount -= connection.watchers.count
        connection.watchers = [:]
    }
}

extension PatternSet {
    /// About how much memory a watch of them takes: each is kept as it came, and taken apart.
    fileprivate var byteCount: Int {
        patterns.reduce(1_024) { $0 + 3 * $1.bytes.count + 200 }
    }
}
