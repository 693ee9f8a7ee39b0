import CLinux
import Glibc
import StateEngine
import StateWire

/// INFO, in the form that Redis clients expect, and STATE.STATUS.
struct ReportCommands {
    private let settings: Settings
    private let registry: Registry
    private let channels: Channels

    init(_ services: Services) {
        settings = services.settings
        registry = services.registry
        channels = services.channels
    }

    func information(_ sections: Arguments, _ context: borrowing CommandContext) {
        let chosen = Set((0..<sections.count).map { sections[$0].text.lowercased() })
        let isAll = chosen.isEmpty || !chosen.isDisjoint(with: ["all", "default", "everything"])
        var text = ""
        for (name, lines) in informationSections(context)
        where isAll || chosen.contains(name.lowercased()) {
            if !text.isEmpty { text += "\r\n" }
            text += "# \(name)\r\n"
            for (field, value) in lines { text += "\(field):\(value)\r\n" }
        }
        context.output.writeBulk(text)
    }

    private func informationSections(
        _ context: borrowing CommandContext
    ) -> [(String, [(String, String)])] {
        let uptime = (context.time - registry.startedAt) / 1_000
        let countsKeys = context.showsEverything && context.core.entries.durableCount > 0
        return [
            (
                "Server",
                [
                    ("redis_version", SessionCommands.redisVersion),
                    ("redis_mode", "standalone"),
                    ("stated_version", settings.options.version),
                    ("process_id", String(getpid())),
                    ("uptime_in_seconds", String(uptime)),
                ]
            ),
            ("Clients", [("connected_clients", String(registry.count))]),
            (
                "Memory",
                context.showsEverything
                    ? [("used_memory", String(clinux_heap_byte_count()))] : []
            ),
            (
                "Persistence",
                [("loading", "0"), ("aof_enabled", registry.store.isPersistent ? "1" : "0")]
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
                countsKeys
                    ? [("db0", "keys=\(context.core.entries.durableCount),expires=0,avg_ttl=0")]
                    : []
            ),
        ]
    }

    func status(_ context: borrowing CommandContext) {
        var fields: [(StaticString, Int64)] = [
            ("pid", Int64(getpid())),
            ("uptime", (context.time - registry.startedAt) / 1_000),
            ("revision", context.core.revisions.durable),
            ("compacted", context.core.revisions.compacted),
        ]
        let isAll = context.showsEverything
        if isAll { fields.append(("keys", Int64(context.core.entries.durableCount))) }
        fields += [
            ("clients", Int64(registry.count)),
            ("watches", Int64(context.core.hub.count - channels.watcherCount)),
        ]
        if isAll {
            fields.append(("uncommitted", Int64(context.core.pending.byteCount)))
            fields.append(("client_memory", Int64(registry.memory.byteCount)))
        }
        fields += [
            ("client_memory_limit", Int64(registry.memory.byteLimit)),
            ("client_memory_refused", Int64(registry.memory.refusedCount)),
        ]
        fields.append(("undone_after_reply", Int64(registry.early.undoneCount)))
        fields += registry.watchCounts
        let storage = storageReport(context)
        context.output.writeMap(4 + fields.count + storage.count, context.version)
        context.output.writeField("version", settings.options.version)
        context.output.writeField("epoch", context.core.epoch.description)
        context.output.writeField("backing", context.core.isPersistent ? "sqlite" : "memory")
        let issue =
            context.core.admission.refusals.reopening ?? context.core.admission.refusals
            .diskShortage
            ?? context.core.admission.refusals.memoryShortage
        context.output.writeField("storage", issue?.message ?? "ok")
        for (name, number) in fields { context.output.writeField(name, number) }
        for (name, text) in storage {
            context.output.writeBulk(name)
            context.output.writeBulk(StateError.printable(text))
        }
    }

    /// The fields of the storage.
    ///
    /// Refused files only appear for users to whom STATE.CHECK shows them.
    private func storageReport(_ context: borrowing CommandContext) -> [(String, String)] {
        var report = registry.store.report()
        if let damage = registry.store.damage,
            let place = report.firstIndex(where: { $0 == ("store", "ok") })
        {
            report[place].1 = damage
        }
        // Sizes and counts include hidden keys.
        if !context.showsEverything { report.removeAll { Int64($0.1) != nil } }
        if context.connection.subject.isPrivileged, let files = context.core.files {
            report.append(("files", files.report))
        }
        return report
    }
}
