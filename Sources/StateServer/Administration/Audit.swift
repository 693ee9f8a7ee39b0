import StateEngine

/// A line of the log for each change of a key whose rule has `audit`, once it is durable.
///
/// It follows commits as a watch does, so that nothing else runs for a change: without such a rule
/// it costs nothing. Used only by the loop thread, under the keyspace's lock.
final class Audit {
    private let settings: Settings
    private let registry: Registry
    private var subscription: CommitSubscription?

    init(_ settings: Settings, _ registry: Registry) {
        (self.settings, self.registry) = (settings, registry)
    }

    /// Watchers in the keyspace's hub that do not belong to STATE.WATCH.
    var watcherCount: Int { subscription == nil ? 0 : 1 }

    /// Follows the rules that apply now, from the first commit that is not durable yet.
    func follow(_ core: KeyspaceCore) {
        subscription?.end(in: core)
        subscription = nil
        let audits = core.rules?.audits ?? []
        registry.observers.logsReads = audits.contains(where: \.includesReads)
        let patterns = audits.map(\.pattern)
        guard !patterns.isEmpty else { return }
        subscription = CommitSubscription(PatternSet(patterns), in: core) {
            [unowned self] revision, changes, core in
            for change in changes { log(change, revision, core) }
        }
    }

    private func log(_ change: Record, _ revision: Int64, _ core: KeyspaceCore) {
        // A more specific rule may make an exception.
        guard let setting = core.rules?.rule(for: change.key)?.settings.audit,
            setting.value != .nothing
        else { return }
        let cause = core.cause(of: change)
        // The whole key, and at the end: what it contains cannot be taken for what the daemon says.
        let key = StateError.quoted(change.key, upTo: change.key.count)
        let fields: [LogField] = [
            .key(change.key), .rule(setting.rule.index), .revision(revision),
        ]
        guard !cause.isExpiry else {
            return settings.options.log(
                .notice,
                .audit,
                "audit: expired at revision \(revision), \(setting.rule): key \(key)",
                fields + [.action("expired")]
            )
        }
        let operation = change.isDeleted ? "deleted" : "set"
        settings.options.log(
            .notice,
            .audit,
            "audit: \(operation) at revision \(revision) by uid \(cause.uid), pid \(cause.pid) "
                + "(\(cause.command.shownAsCommand)), \(setting.rule): key \(key)",
            fields + [
                .uid(cause.uid), .pid(cause.pid), .command(cause.command), .action(operation),
            ]
        )
    }
}
