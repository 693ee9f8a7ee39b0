import CLinux
import StateEngine
import StateWire

/// STATE.METRICS: what the daemon counts, in the text format of Prometheus 0.0.4.
///
/// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
struct MetricsCommand {
    private let services: Services

    init(_ services: Services) { self.services = services }

    /// - Complexity: O(*n*) in connections, watches, handlers and verbs that were used.
    func write(_ context: inout CommandContext) throws(StateError) {
        try context.requireAdmin("STATE.METRICS")
        var text = MetricsText()
        writeProcess(context, &text)
        writeCommits(services.keyspace.meter, &text)
        writeQueues(context, &text)
        writeClients(&text)
        writeStorage(context, &text)
        services.mirror?.write(&text)
        writeRefusals(context, &text)
        writeCommands(&text)
        writeUsers(&text)
        try writeHandlers(&context, &text)
        context.output.writeBulk(text.bytes)
    }

    private func writeProcess(_ context: borrowing CommandContext, _ text: inout MetricsText) {
        let version = services.settings.options.version
        text.gauge(
            "build_info",
            "The version of the daemon; always 1.",
            [([("version", version)], 1)]
        )
        text.gauge(
            "start_time_seconds",
            "When the daemon started, in seconds since 1970.",
            Double(services.registry.startedAt) / 1_000
        )
        text.gauge("keys", "Keys.", Double(context.core.entries.durableCount))
        let revision = context.core.revisions.durable
        text.gauge("revision", "The newest durable revision.", Double(revision))
        text.counter(
            "expired_keys_total",
            "Keys that have expired.",
            Double(context.core.entries.deadlines.expiredCount)
        )
    }

    private func writeCommits(_ meter: CommitMeter, _ text: inout MetricsText) {
        text.counter("commits_total", "Durable commits.", Double(meter.commitCount))
        text.counter(
            "failed_commits_total",
            "Commits that storage refused.",
            Double(meter.failedCount)
        )
        text.counter("changes_total", "Durable changes of keys.", Double(meter.changeCount))
        text.counter(
            "change_bytes_total",
            "Bytes of the keys and values of durable commits.",
            Double(meter.byteCount)
        )
        text.histogram(
            "sync_duration_seconds",
            "Time from the write of a batch of commits until it is on stable storage.",
            bounds: CommitMeter.bounds.map { Double($0) / 1_000_000 },
            counts: meter.counts,
            sum: Double(meter.nanoseconds) / 1e9
        )
    }

    private func writeQueues(_ context: borrowing CommandContext, _ text: inout MetricsText) {
        text.gauge(
            "queue_bytes",
            "Bytes of changes that wait for stable storage.",
            Double(context.core.pending.byteCount)
        )
        let deferred = services.registry.store.deferred()
        text.gauge(
            "deferred_changes",
            "Changes with durability interval that are not stored yet.",
            Double(deferred.count)
        )
        let held = services.registry.connections.reduce(0) { $0 + $1.outbound.held.count }
        text.gauge("held_replies", "Replies that wait for stable storage.", Double(held))
        let phases = services.registry.watchCounts.map { name, count in
            ([("phase", String("\(name)".dropFirst("watches_".count)))], Double(count))
        }
        text.gauge("watches", "Watches by phase.", phases)
    }

    private func writeClients(_ text: inout MetricsText) {
        let registry = services.registry
        text.gauge("clients", "Connections.", Double(registry.count))
        text.counter("connections_total", "Accepted connections.", Double(registry.counts.accepted))
        text.counter(
            "slow_clients_ended_total",
            "Connections that were ended because the client did not read.",
            Double(registry.counts.letGo)
        )
        let memory = registry.memory
        text.gauge(
            "memory_bytes",
            "Memory by budget.",
            [
                ([("budget", "process")], Double(clinux_heap_byte_count())),
                ([("budget", "clients")], Double(memory.byteCount)),
                ([("budget", "input")], Double(memory.inputByteCount)),
            ]
        )
        text.gauge(
            "memory_limit_bytes",
            "The limits of the budgets of memory.",
            [
                ([("budget", "clients")], Double(memory.byteLimit)),
                ([("budget", "input")], Double(services.settings.options.inputByteCount)),
            ]
        )
    }

    private func writeStorage(_ context: borrowing CommandContext, _ text: inout MetricsText) {
        let refusals = context.core.admission.refusals.areAny
        text.gauge("writable", "1 if storage accepts writes, else 0.", refusals ? 0 : 1)
        let report = services.registry.store.report()
        let damaged = services.registry.store.damage != nil
        let issues = report.filter { ["settling", "store"].contains($0.0) }
        text.gauge(
            "ok",
            "1 if a part of the storage has no problem, else 0.",
            issues.map { part, issue in
                ([("part", part)], issue == "ok" && !(part == "store" && damaged) ? 1 : 0)
            }
        )
        func number(_ field: String) -> Double? {
            report.first { $0.0 == field }.flatMap { Double($0.1) }
        }
        for (field, help) in MetricsCommand.storeGauges {
            if let number = number(field) { text.gauge(field, help, number) }
        }
        for (field, help) in MetricsCommand.storeCounters {
            if let number = number(field) { text.counter("\(field)_total", help, number) }
        }
        if let milliseconds = number("settled_at") {
            text.gauge(
                "settled_timestamp_seconds",
                "When the log was settled into the database last.",
                milliseconds / 1_000
            )
        }
        if let microseconds = number("settle_microseconds") {
            text.gauge(
                "settle_duration_seconds",
                "How long that took.",
                microseconds / 1_000_000
            )
        }
    }

    /// Fields of STATE.STATUS about the store, with their meaning.
    private static let storeGauges = [
        ("database_bytes", "The size of the database."),
        ("free_bytes", "Unused bytes in the database."),
        ("log_bytes", "The size of the log."),
        ("log_segments", "The segments of the log."),
        ("unsettled_bytes", "Bytes of the log that are not settled into the database yet."),
    ]
    private static let storeCounters = [
        ("segments_dropped", "Segments of the log that are beyond the retention."),
        ("segments_reused", "Dropped segments whose files the log uses again."),
        ("segments_rewritten", "Segments that were written again without what rules do not keep."),
        (
            "segments_replaced",
            "Segments that were written again after a write or sync that failed."
        ),
        ("carried_bytes", "Bytes of earlier versions that the log has again."),
        ("log_lines_dropped", "Lines of the log that nobody read in time."),
    ]

    private func writeRefusals(_ context: borrowing CommandContext, _ text: inout MetricsText) {
        text.counter(
            "denials_total",
            "Requests that a rule refused.",
            Double(services.gate.repeated.denialCount)
        )
        text.counter(
            "memory_refusals_total",
            "Replies and connections that were refused for memory.",
            Double(services.registry.memory.refusedCount)
        )
        text.counter(
            "undone_commits_total",
            "Commits that were undone after an early reply.",
            Double(services.registry.early.undoneCount)
        )
        let errors = services.statistics.errors.sorted { $0.key < $1.key }
        text.counter(
            "errors_total",
            "Errors that clients got, by code.",
            errors.map { ([("code", $0.key)], Double($0.value)) }
        )
    }

    private func writeCommands(_ text: inout MetricsText) {
        let used = Verb.all.filter { services.statistics.counts[$0.index].calls > 0 }
        text.counter(
            "commands_total",
            "Commands by verb.",
            used.map { verb in
                (
                    [("verb", verb.name.rawValue)],
                    Double(services.statistics.counts[verb.index].calls)
                )
            }
        )
    }

    private func writeUsers(_ text: inout MetricsText) {
        let rows = services.registry.memory.users.rows(services.registry.connections)
        func values(_ field: KeyPath<UserStatistics.Counts, Int>) -> [MetricsText.Row] {
            rows.map { ([("uid", $0.uid)], Double($0.counts[keyPath: field])) }
        }
        text.gauge("user_clients", "Connections by user.", values(\.clients))
        text.gauge("user_memory_bytes", "Memory of connections by user.", values(\.memory))
        let counters: [(name: String, help: String, KeyPath<UserStatistics.Counts, Int>)] = [
            ("connections", "Accepted connections by user.", \.connections),
            ("commands", "Commands by user.", \.commands),
            ("commits", "Commits by user, with those that storage refused later.", \.commits),
            ("errors", "Errors in reply to commands, by user.", \.errors),
            ("denials", "Requests that a rule refused, by user.", \.denials),
        ]
        for (name, help, field) in counters {
            text.counter("user_\(name)_total", help, values(field))
        }
    }

    private func writeHandlers(
        _ context: inout CommandContext,
        _ text: inout MetricsText
    ) throws(StateError) {
        var rows: [(labels: [(String, String)], value: Double)] = []
        let newest = context.core.revisions.lastChange
        let epoch = context.core.epoch
        context.core.forEachMetadataEntry(&context.receipt) { recordName, record in
            guard let (uid, name) = HandlerRecord.parts(of: recordName),
                let handler = try? HandlerRecord(record, of: recordName), handler.epoch == epoch,
                let position = handler.position
            else { return }
            let labels = [("uid", "\(uid)"), ("handler", String(name))]
            rows.append((labels, Double(max(0, newest - position))))
        }
        text.gauge("handler_lag_revisions", "Revisions that a named handler is behind.", rows)
    }
}
