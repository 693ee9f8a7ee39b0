import StateEngine
import StateWire

/// How current the copy of a cluster is, for those who watch it.
extension Services {
    /// Reports that the copy is current again, or cut off: to the log, and to the watches of its
    /// keys.
    func noteMirror(_ mirror: Mirror, _ core: KeyspaceCore) {
        let prefix = mirror.options.prefix.text
        let log = settings.options.log
        if mirror.isCurrent {
            log(.notice, .clusterCurrent, "\(prefix) is what the cluster has", [])
        } else {
            log(
                .warning,
                .clusterAway,
                "\(prefix) may be behind the cluster: \(mirror.reason)",
                []
            )
            if let refusal = mirror.refusal { gate.cluster?.refuseWaiting(refusal, core) }
        }
        for connection in registry.connections {
            for watcher in connection.watches.all.values
            where watcher.watcher.patterns.patterns.contains(where: mirror.options.prefix.meets) {
                watcher.format.writeNotice(
                    mirror.isCurrent ? "state.current" : "state.away",
                    core.revisions.durable,
                    to: &connection.outbound.bytes
                )
                flushes.add(connection)
            }
        }
    }

    /// The connection has ended; if it was the link, nothing comes any longer.
    func endMirror(_ connection: Connection) {
        if connection.inbound.awaitsLateReply { gate.cluster?.forget(connection) }
        guard let mirror, mirror.link === connection else { return }
        mirror.link = nil
        mirror.comparison = nil
        gate.cluster?.pause()
        mirror.note("its link has ended")
    }
}

extension MirrorCommands {
    /// Refuses to read keys of a cluster, because the copy may be behind and its rule says so: a
    /// command that names such a key, or lists a pattern that may match one.
    ///
    /// What was at a revision or a time is read all the same. Commands that write may read, too: COPY
    /// and GETEX do.
    ///
    /// - Throws: ``StateError/Code/stale``; a transaction that queues the command is refused.
    func refuseStale(
        _ verb: Verb,
        _ arguments: Arguments,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        guard let mirror, !verb.looksBack(arguments),
            mirror.isNamed(by: verb, arguments)
        else { return }
        context.connection.session.transaction?.refuse()
        throw mirror.staleness
    }
}

extension Mirror {
    /// Whether a command names a key of the cluster, or lists a pattern that may match one.
    fileprivate func isNamed(by verb: Verb, _ arguments: Arguments) -> Bool {
        let keys = verb.keys
        if keys.first > 0 {
            let last = keys.last < 0 ? arguments.count + keys.last : keys.last
            for index in stride(from: keys.first, through: last, by: max(1, keys.step))
            where index < arguments.count && options.prefix.holds(arguments[index]) {
                return true
            }
        }
        guard verb.name == .stateList || verb.name == .keys, arguments.count > 1,
            let pattern = try? Pattern(arguments[1])
        else { return false }
        return options.prefix.meets(pattern)
    }

    fileprivate var staleness: StateError {
        let proof =
            age.map { "it was complete \($0) ms ago" } ?? "it was not complete since the start"
        return StateError(
            .stale,
            "\(options.prefix.text) may be behind the cluster, and its rule has stale: \"refuse\": "
                + "\(proof); \(reason)"
        )
    }
}

extension Server {
    /// The proof of the copy may be too old now.
    func expireMirror() {
        guard let mirror = services.mirror, mirror.expire() else { return }
        keyspace.withCore { services.noteMirror(mirror, $0) }
    }
}
