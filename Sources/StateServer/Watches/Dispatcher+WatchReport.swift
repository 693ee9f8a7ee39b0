import CLinux
import StateEngine
import StateWire

/// STATE.WATCHES, and what STATE.STATUS tells of watches.
extension Dispatcher {
    func stateWatches(_ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        let start = connection.output.count
        let clients = registry.connections.filter { maySee($0, connection, core) }
        connection.output.writeArray(clients.reduce(0) { $0 + $1.watchers.count })
        for client in clients.sorted(by: { $0.number < $1.number }) {
            for watcher in client.watchers.values.sorted(by: { $0.number < $1.number }) {
                write(watcher, of: client, connection, core)
                try checkReply(connection.output.count - start)
            }
        }
    }

    private func write(
        _ watcher: ConnectionWatcher,
        of client: Connection,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) {
        let position = watcher.watcher.toldThrough(in: core) ?? 0
        let waiting = watcher.watcher.waiting
        connection.output.writeMap(13, connection.version)
        connection.output.writeField("client", Int64(client.number))
        connection.output.writeField("watch", Int64(watcher.number))
        connection.output.writeField("pid", Int64(client.peer.pid))
        connection.output.writeField("uid", Int64(client.peer.uid))
        connection.output.writeBulk("name")
        connection.output.writeBulk(client.name)
        connection.output.writeBulk("patterns")
        let patterns = watcher.watcher.patterns.patterns
        connection.output.writeArray(patterns.count)
        for pattern in patterns { connection.output.writeBulk(pattern.bytes) }
        connection.output.writeBulk("options")
        let words = watcher.format.options.words
        connection.output.writeArray(words.count)
        for word in words { connection.output.writeBulk(word) }
        connection.output.writeField("state", watcher.group.rawValue)
        connection.output.writeField("revision", position)
        connection.output.writeField("lag", core.revisions.durable - position)
        connection.output.writeField("waiting", Int64(watcher.waitingByteCount))
        connection.output.writeField("marks", Int64(waiting?.markCount ?? 0))
        connection.output.writeField("values", Int64(waiting?.valueCount ?? 0))
    }

    /// How many watches are in each group, by the name of STATE.STATUS.
    func watchCounts() -> [(StaticString, Int64)] {
        var counts: [ConnectionWatcher.Group: Int64] = [:]
        for connection in registry.connections {
            for watcher in connection.watchers.values { counts[watcher.group, default: 0] += 1 }
        }
        return [
            ("watches_synced", counts[.synced] ?? 0),
            ("watches_catching_up", counts[.catchingUp] ?? 0),
            ("watches_blocked", counts[.blocked] ?? 0),
        ]
    }
}
