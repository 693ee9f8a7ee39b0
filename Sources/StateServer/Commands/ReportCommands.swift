import CLinux
import Glibc
import StateEngine
import StateWire

/// INFO, in the form that Redis clients expect, and STATE.STATUS.
struct ReportCommands {
    private let settings: Settings
    private let registry: Registry
    private let channels: Channels
    private let tracking: Tracking
    private let activity: Activity
    private let audit: Audit
    private let mirror: Mirror?
    let statistics: CommandStatistics

    init(_ services: Services) {
        settings = services.settings
        registry = services.registry
        channels = services.channels
        (tracking, activity) = (services.tracking, services.activity)
        (audit, statistics) = (services.audit, services.statistics)
        mirror = services.mirror
    }

    func information(_ sections: Arguments, _ context: inout CommandContext) {
        context.noteWalk(over: registry.count)
        let chosen = Set((0..<sections.count).map { sections[$0].text.lowercased() })
        let isEverything = !chosen.isDisjoint(with: ["all", "everything"])
        let isDefault = chosen.isEmpty || isEverything || chosen.contains("default")
        var text = ""
        // As in Redis, the longest sections have to be asked for.
        let named = ["Commandstats", "Latencystats"]
        for (name, lines) in informationSections(context)
        where (named.contains(name) ? isEverything : isDefault)
            || chosen.contains(name.lowercased())
        {
            if !text.isEmpty { text += "\r\n" }
            text += "# \(name)\r\n"
            for (field, value) in lines { text += "\(field):\(value)\r\n" }
        }
        context.output.writeBulk(text)
    }

    private typealias Fields = [(String, String)]

    private func informationSections(
        _ context: borrowing CommandContext
    ) -> [(String, Fields)] {
        let uptime = (context.time - registry.startedAt) / 1_000
        let keyCount = context.core.entries.durableCount
        let deadlines = context.core.entries.deadlines
        let average = deadlines.averageMillisecondsLeft(at: context.core.entries.clock())
        let countsKeys = context.showsEverything && keyCount > 0
        return [
            ("Server", serverFields(context, uptime)),
            ("Clients", clientFields),
            ("Memory", context.showsEverything ? memoryFields : []),
            ("Persistence", persistenceFields(context)),
            (
                "Stats",
                [
                    (
                        "total_connections_received",
                        String(registry.counts.accepted - registry.counts.before.accepted)
                    ),
                    (
                        "total_commands_processed",
                        String(registry.commandCount - registry.counts.before.commands)
                    ),
                    ("expired_keys", context.showsEverything ? "\(deadlines.expiredCount)" : "0"),
                    ("evicted_keys", "0"),
                    ("pubsub_channels", String(channels.nameCount)),
                    ("pubsub_patterns", String(channels.patternCount)),
                    ("pubsubshard_channels", String(channels.shardCount)),
                    ("tracking_total_keys", String(tracking.keyCount)),
                    ("tracking_total_items", String(tracking.itemCount)),
                    ("tracking_total_prefixes", String(tracking.prefixCount)),
                    ("total_error_replies", String(statistics.errors.values.reduce(0, +))),
                    ("client_output_buffer_limit_disconnections", String(registry.counts.letGo)),
                ]
            ),
            (
                "Replication",
                [
                    ("role", "master"), ("connected_slaves", "0"),
                    ("master_failover_state", "no-failover"), ("second_repl_offset", "-1"),
                    ("repl_backlog_active", "0"),
                ]
            ),
            ("CPU", processorFields),
            ("Modules", []),
            ("Commandstats", commandFields),
            ("Errorstats", errorFields),
            ("Latencystats", latencyFields),
            ("Cluster", [("cluster_enabled", "0")]),
            (
                "Keyspace",
                countsKeys
                    ? [("db0", "keys=\(keyCount),expires=\(deadlines.count),avg_ttl=\(average)")]
                    : []
            ),
        ]
    }

    private func serverFields(
        _ context: borrowing CommandContext,
        _ uptime: Int64
    ) -> Fields {
        var system = utsname()
        uname(&system)
        return [
            ("redis_version", SessionCommands.redisVersion), ("redis_git_sha1", "00000000"),
            ("redis_git_dirty", "0"), ("redis_mode", "standalone"),
            ("os", "\(text(system.sysname)) \(text(system.release)) \(text(system.machine))"),
            ("arch_bits", String(Int.bitWidth)), ("monotonic_clock", "POSIX clock_gettime"),
            ("multiplexing_api", "epoll"), ("stated_version", settings.options.version),
            ("process_id", String(getpid())), ("process_supervised", "no"),
            ("run_id", runIdentifier(context)), ("tcp_port", "0"),
            ("server_time_usec", String(context.time * 1_000)),
            ("uptime_in_seconds", String(uptime)), ("uptime_in_days", String(uptime / 86_400)),
        ]
    }

    /// Another one for each process: 40 hexadecimal digits, as in Redis.
    private func runIdentifier(_ context: borrowing CommandContext) -> String {
        func digits(_ number: Int64, _ count: Int) -> String {
            let text = String(UInt64(bitPattern: number), radix: 16)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(context.core.epoch)" + digits(registry.startedAt, 16) + digits(Int64(getpid()), 8)
    }

    private func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private var clientFields: Fields {
        let blocked = registry.connections.count { $0.inbound.blocked != nil }
        return [
            ("connected_clients", String(registry.count)), ("cluster_connections", "0"),
            ("maxclients", String(settings.options.clientCount)),
            ("blocked_clients", String(blocked)),
            ("tracking_clients", String(tracking.clientCount)),
            ("clients_in_timeout_table", "0"),
        ]
    }

    private var memoryFields: Fields {
        let used = Int(clinux_heap_byte_count())
        let total = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
        return [
            ("used_memory", String(used)), ("used_memory_human", human(used)),
            ("total_system_memory", String(total)), ("total_system_memory_human", human(total)),
            ("maxmemory", "0"), ("maxmemory_human", "0B"), ("maxmemory_policy", "noeviction"),
            ("mem_allocator", "libc"), ("active_defrag_running", "0"),
            ("lazyfree_pending_objects", "0"),
        ]
    }

    /// A number of bytes as Redis writes it for people.
    private func human(_ byteCount: Int) -> String {
        guard byteCount >= 1_024 else { return "\(byteCount)B" }
        var (number, unit) = (Double(byteCount) / 1_024, 0)
        while number >= 1_024, unit < 4 { (number, unit) = (number / 1_024, unit + 1) }
        let hundredths = Int((number * 100).rounded())
        let rest = hundredths % 100
        return
            "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)\(["K", "M", "G", "T", "P"][unit])"
    }

    private func persistenceFields(_ context: borrowing CommandContext) -> Fields {
        let isFailing =
            context.core.admission.refusals.reopening != nil
            || context.core.admission.refusals.diskShortage != nil
        return [
            ("loading", "0"), ("async_loading", "0"), ("rdb_bgsave_in_progress", "0"),
            ("aof_enabled", registry.store.isPersistent ? "1" : "0"),
            ("aof_rewrite_in_progress", "0"), ("aof_rewrite_scheduled", "0"),
            ("aof_last_write_status", isFailing ? "err" : "ok"),
        ]
    }

    private var processorFields: Fields {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> String {
            let digits = String(time.tv_usec)
            return "\(time.tv_sec)." + String(repeating: "0", count: 6 - digits.count) + digits
        }
        return [
            ("used_cpu_sys", seconds(usage.ru_stime)), ("used_cpu_user", seconds(usage.ru_utime)),
        ]
    }

    func status(_ context: inout CommandContext) {
        context.noteWalk(over: registry.count + registry.counts.watches)
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
            (
                "watches",
                Int64(
                    context.core.hub.count - channels.watcherCount - tracking.watcherCount
                        - activity.watcherCount - audit.watcherCount
                )
            ),
        ]
        if isAll {
            fields.append(("uncommitted", Int64(context.core.pending.byteCount)))
            let deferred = registry.store.deferred()
            fields.append(("deferred", Int64(deferred.count)))
            fields.append(("deferred_bytes", Int64(deferred.byteCount)))
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
        context.output.writeField("storage", storageIssue(context) ?? "ok")
        for (name, number) in fields { context.output.writeField(name, number) }
        for (name, text) in storage {
            context.output.writeBulk(name)
            if let number = Int64(text) {
                context.output.writeInteger(number)
            } else {
                context.output.writeBulk(StateError.printable(text))
            }
        }
    }

    /// Why writes are refused now; nil if they are not.
    private func storageIssue(_ context: borrowing CommandContext) -> String? {
        let core = context.core
        if let reopening = core.admission.refusals.reopening { return reopening.message }
        guard let shortage = core.admission.refusals.diskShortage else {
            return core.admission.refusals.memoryShortage?.message
        }
        let count = core.admission.refusals.shortRefusalCount
        let writes = count == 1 ? "1 write" : "\(count) writes"
        let since = UniversalTime.text(core.admission.refusals.shortSince)
        return "full since \(since), \(writes) refused: \(shortage.message)"
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
        if !context.showsEverything {
            // Sizes and counts include hidden keys, and what is wrong may name one.
            report.removeAll { Int64($0.1) != nil }
            for index in report.indices where ["store", "settling"].contains(report[index].0) {
                guard report[index].1 != "ok" else { continue }
                report[index].1 = "a problem that the log of the daemon names"
            }
        }
        report += mirror?.report(showsCounts: context.showsEverything) ?? []
        if context.connection.subject.isPrivileged, let files = context.core.files {
            report.append(("files", files.report))
        }
        return report
    }
}
