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
        guard let mirror, mirror.link === connection else { return }
        mirror.link = nil
        mirror.comparison = nil
        mirror.note("its link has ended")
    }
}

extension Server {
    /// The proof of the copy may be too old now.
    func expireMirror() {
        guard let mirror = services.mirror, mirror.expire() else { return }
        keyspace.withCore { services.noteMirror(mirror, $0) }
    }
}
