import CLinux
import Glibc
import StateEngine
import StateWire

/// INFO, in the form that Redis's clients read, and STATE.STATUS.
extension Dispatcher {
    func information(_ sections: [String], _ core: KeyspaceCore) -> String {
        let wanted = Set(sections.map { $0.lowercased() })
        let isAll = wanted.isEmpty || !wanted.isDisjoint(with: ["all", "default", "everything"])
        var text = ""
        for (name, lines) in informationSections(core)
        where isAll || wanted.contains(name.lowercased()) {
            if !text.isEmpty { text += "\r\n" }
            text += "# \(name)\r\n"
            for (field, value) in lines { text += "\(field):\(value)\r\n" }
        }
        return text
    }

    private func informationSections(_ core: KeyspaceCore) -> [(String, [(String, String)])] {
        let uptime = (now - registry.startedAt) / 1_000
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
            ("Memory", [("used_memory", String(clinux_heap_byte_count()))]),
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
                core.durableKeyCount == 0
                    ? [] : [("db0", "keys=\(core.durableKeyCount),expires=0,avg_ttl=0")]
            ),
        ]
    }

    func stateStatus(_ connection: Connection, _ core: KeyspaceCore) {
        var fields: [(StaticString, Int64)] = [
            ("pid", Int64(getpid())),
            ("uptime", (now - registry.startedAt) / 1_000),
            ("revision", core.durableRevision),
            ("compacted", core.compactedRevision),
            ("keys", Int64(core.durableKeyCount)),
            ("clients", Int64(registry.count)),
            ("watches", Int64(core.hub.count - channels.watcherCount)),
            ("uncommitted", Int64(core.uncommittedByteCount)),
            ("undone_after_reply", Int64(registry.undoneAfterReplyCount)),
            ("client_memory", Int64(registry.memory.byteCount)),
            ("client_memory_limit", Int64(registry.memory.byteLimit)),
            ("client_memory_refused", Int64(registry.memory.refusedCount)),
        ]
        fields += watchCounts()
        let storage = registry.storageReport()
        connection.output.writeMap(4 + fields.count + storage.count, connection.version)
        connection.output.writeField("version", options.version)
        connection.output.writeField("epoch", core.epoch.description)
        connection.output.writeField("backing", core.isPersistent ? "sqlite" : "memory")
        connection.output.writeField("storage", core.refusal?.message ?? "ok")
        for (name, number) in fields { connection.output.writeField(name, number) }
        for (name, text) in storage {
            connection.output.writeBulk(name)
            connection.output.writeBulk(text)
        }
    }
}
