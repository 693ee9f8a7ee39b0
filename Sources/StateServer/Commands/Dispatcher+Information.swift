import CLinux
import Glibc
import StateEngine
import StateWire

/// INFO, in the form that Redis's clients read, and STATE.STATUS.
extension Dispatcher {
    func information(
        _ sections: [String],
        _ connection: Connection,
        _ core: KeyspaceCore
    ) -> String {
        let wanted = Set(sections.map { $0.lowercased() })
        let isAll = wanted.isEmpty || !wanted.isDisjoint(with: ["all", "default", "everything"])
        var text = ""
        for (name, lines) in informationSections(connection, core)
        where isAll || wanted.contains(name.lowercased()) {
            if !text.isEmpty { text += "\r\n" }
            text += "# \(name)\r\n"
            for (field, value) in lines { text += "\(field):\(value)\r\n" }
        }
        return text
    }

    private func informationSections(
        _ connection: Connection,
        _ core: KeyspaceCore
    ) -> [(String, [(String, String)])] {
        let uptime = (now - registry.startedAt) / 1_000
        let countsKeys = showsEverything(to: connection, core) && core.entries.durableCount > 0
        return [
            (
                "Server",
                [
                    ("redis_version", Dispatcher.redisVersion),
                    ("redis_mode", "standalone"),
                    ("stated_version", options.version),
                    ("process_id", String(getpid())),
                    ("uptime_in_seconds", String(uptime)),
                ]
            ),
            ("Clients", [("connected_clients", String(registry.count))]),
            (
                "Memory",
                showsEverything(to: connection, core)
                    ? [("used_memory", String(clinux_heap_byte_count()))] : []
            ),
            (
                "Persistence",
                [("loading", "0"), ("aof_enabled", registry.isPersistent ? "1" : "0")]
            ),
            (
                "Stats",
                [
                    ("total_connections_received", String(registry.acceptedCount)),
                    ("total_commands_processed", String(registry.commandCount)),
                    ("pubsub_channels", String(channels.nameCount)),
                    ("pubsub_patterns", String(channels.patternCount)),
                    ("client_output_buffer_limit_disconnections", String(registry.letGoCount)),
                ]
            ),
            ("Replication", [("role", "master"), ("connected_slaves", "0")]),
            (
                "Keyspace",
                countsKeys ? [("db0", "keys=\(core.entries.durableCount),expires=0,avg_ttl=0")] : []
            ),
        ]
    }

    func stateStatus(_ connection: Connection, _ core: KeyspaceCore) {
        var fields: [(StaticString, Int64)] = [
            ("pid", Int64(getpid())),
            ("uptime", (now - registry.startedAt) / 1_000),
            ("revision", core.revisions.durable),
            ("compacted", core.revisions.compacted),
        ]
        let isAll = showsEverything(to: connection, core)
        if isAll { fields.append(("keys", Int64(core.entries.durableCount))) }
        fields += [
            ("clients", Int64(registry.count)),
            ("watches", Int64(core.hub.count - channels.watcherCount)),
        ]
        if isAll {
            fields.append(("uncommitted", Int64(core.pending.byteCount)))
            fields.append(("client_memory", Int64(registry.memory.byteCount)))
        }
        fields += [
            ("client_memory_limit", Int64(registry.memory.byteLimit)),
            ("client_memory_refused", Int64(registry.memory.refusedCount)),
        ]
        fields.append(("undone_after_reply", Int64(registry.undoneAfterReplyCount)))
        fields += watchCounts()
        let storage = storageReport(for: connection, core)
        connection.output.writeMap(4 + fields.count + storage.count, connection.version)
        connection.output.writeField("version", options.version)
        connection.output.writeField("epoch", core.epoch.description)
        connection.output.writeField("backing", core.isPersistent ? "sqlite" : "memory")
        let issue =
            core.refusals.reopening ?? core.refusals.diskShortage ?? core.refusals.memoryShortage
        connection.output.writeField("storage", issue?.message ?? "ok")
        for (name, number) in fields { connection.output.writeField(name, number) }
        for (name, text) in storage {
            connection.output.writeBulk(name)
            connection.output.writeBulk(StateError.printable(text))
        }
    }

    /// What the storage says of itself; of files that are refused only to whom STATE.CHECK names them.
    private func storageReport(
        for connection: Connection,
        _ core: KeyspaceCore
    ) -> [(String, String)] {
        var report = registry.storageReport()
        if let damage = registry.damage,
            let place = report.firstIndex(where: { $0 == ("store", "ok") })
        {
            report[place].1 = damage
        }
        // Sizes and counts are sums.
        if !showsEverything(to: connection, core) { report.removeAll { Int64($0.1) != nil } }
        if connection.subject.isPrivileged, let files = core.files {
            report.append(("files", files.report))
        }
        return report
    }

    // MARK: Sums

    /// DBSIZE.
    ///
    /// - Throws: ``StateError/Code/noPermission``, where keys may be hidden from the connection: their number is, too.
    func databaseSize(_ connection: Connection, _ core: KeyspaceCore) throws(StateError) {
        guard showsEverything(to: connection, core) else {
            throw StateError(
                .noPermission,
                "DBSIZE counts keys that uid \(connection.peer.uid) may not read; STATE.LIST / COUNT "
                    + "counts the others"
            )
        }
        connection.output.writeInteger(Int64(core.entries.durableCount))
    }

    /// Whether sums over all keys tell a connection of none that are hidden from it.
    private func showsEverything(to connection: Connection, _ core: KeyspaceCore) -> Bool {
        core.visibility(of: connection.subject)?.showsEverything ?? true
    }
}
