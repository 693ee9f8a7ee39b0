import StateEngine
import StateRules
import StateServer

/// What differs between two configurations.
extension Options {
    /// The options of the daemon by their names in a configuration, with their values as text.
    private var written: [(name: String, value: String?, isLive: Bool)] {
        let (socket, limits) = (configuration.socket, configuration.limits)
        let history = configuration.history
        return [
            ("socket.path", socket.path, false),
            ("socket.mode", "0" + String(socket.mode, radix: 8), false),
            ("socket.group", socket.group.map { String($0) }, false),
            ("data", configuration.dataDirectory, false),
            ("credentials", configuration.credentials, false),
            ("cluster.user", configuration.cluster.user.map { String($0) }, false),
            ("cluster.node", configuration.cluster.node, false),
        ] + LimitOption.allCases.map { ("limits.\($0.rawValue)", limits.text($0), true) } + [
            ("history.age", Quantity.text(history.age), true),
            ("history.changes", String(history.changeCount), true),
            ("history.bytes", Quantity.text(byteCount: history.byteCount), true),
        ]
    }

    /// What differs in `next`, and whether it can change while clients are served.
    ///
    /// Keys stay where `locations` of the start put them.
    func changes(to next: Options, _ locations: [RuleDescription]) -> ReloadReport {
        var report = ReloadReport(changed: [], needsRestart: [])
        for (old, new) in zip(written, next.written) where old.value != new.value {
            let change = ReloadReport.Change(option: old.name, old: old.value, new: new.value)
            old.isLive ? report.changed.append(change) : report.needsRestart.append(change)
        }
        let rules = configuration.rules
        // The loop uses the table itself.
        let tables = [rules, next.configuration.rules].map { KeyRules(copying: $0.byKey) }
        let defaults = tables[0].standards.changes(to: tables[1].standards)
        report.changed += defaults.map { key, old, new in
            ReloadReport.Change(
                option: "default of \(String(decoding: key, as: UTF8.self))",
                old: old,
                new: new,
                defaultOf: key
            )
        }
        report.changed += RuleChanges(rules.policies, next.configuration.rules.policies).changes
        report.needsRestart += RuleChanges(locations, next.configuration.rules.locations).changes
        let everybody = tables.map { Visibility.ofEverybody($0) }
        report.changed = report.changed.map { change in
            var change = change
            let hasValues = change.defaultOf != nil || VisiblePart.hasValues(option: change.option)
            change.isLogged =
                !hasValues || change.part(visibleTo: everybody, .unowned) == .everything
            return change
        }
        return report
    }

    /// These options, except those that only a restart can change: they stay as they are.
    func keepingPlaces(of running: Options) -> Options {
        var options = self
        options.configuration.socket = running.configuration.socket
        options.configuration.dataDirectory = running.configuration.dataDirectory
        options.configuration.credentials = running.configuration.credentials
        options.configuration.cluster = running.configuration.cluster
        return options
    }

    /// Applies these limits to a server.
    func apply(to server: inout ServerOptions, _ log: Log) {
        let limits = configuration.limits
        server.limits = limits.keyspace
        server.watchCount = limits[.watches]
        server.stepCount = limits[.steps]
        server.globCount = limits[.globs]
        server.trackedKeyCount = limits[.trackedKeys]
        server.outputByteCount = limits[.outputBytes]
        server.inputByteCount = limits[.inputBytes]
        server.replyByteCount = limits[.replyBytes]
        server.memoryByteCount = MachineMemory.bound(limits[.memoryBytes], log: log)
        server.frameMilliseconds = Int64(limits[.frameTimeout])
        server.restMilliseconds = Int64(limits[.rest])
        server.graceMilliseconds = Int64(limits[.graceSeconds]) * 1_000
        server.checkMilliseconds = Int64(limits[.checkEvery])
        server.clientCount = DescriptorLimit.raise(forClients: limits[.clients], log: log)
    }
}

extension RuleTable {
    /// The parts of the rules that say where keys are stored, and the mode of their files if that
    /// follows from who may read them: files that are there get it at a start.
    var locations: [RuleDescription] {
        let restricted = rules.filter { rule in
            guard case .file? = rule.backing else { return false }
            return rule.form.mode == nil && form(of: rule).readers != nil
        }
        let indices = Set(restricted.map(\.place.index))
        return descriptions { KeyBacking.options.contains($0) }
            .map { rule in
                guard indices.contains(rule.place.index) else { return rule }
                var rule = rule
                rule.options.append((name: "mode", value: "\"0600\""))
                return rule
            }
    }

    /// The other parts of the rules.
    fileprivate var policies: [RuleDescription] {
        descriptions { !KeyBacking.options.contains($0) }
    }

    private func descriptions(where isMeant: (String) -> Bool) -> [RuleDescription] {
        byKey.descriptions.map { rule in
            var rule = rule
            rule.options.removeAll { !isMeant($0.name) }
            return rule
        }
    }
}

/// The options that differ between old and new rules.
///
/// Two rules are the same if they have the same pattern, whatever their numbers. Of several rules
/// with one pattern, the first is compared with the first, and so on.
private struct RuleChanges {
    private(set) var changes: [ReloadReport.Change] = []

    init(_ old: [RuleDescription], _ new: [RuleDescription]) {
        var known = Dictionary(grouping: old, by: \.keys)
        for rule in new {
            let before = known[rule.keys]?.first
            if before != nil { known[rule.keys]?.removeFirst() }
            compare(before?.options ?? [], rule.options, rule)
        }
        for rule in known.values.joined().sorted(by: { $0.number < $1.number }) {
            compare(rule.options, [], rule)
        }
    }

    private mutating func compare(
        _ old: [(name: String, value: String)],
        _ new: [(name: String, value: String)],
        _ rule: RuleDescription
    ) {
        func value(_ name: String, _ options: [(name: String, value: String)]) -> String? {
            options.first { $0.name == name }?.value
        }
        let removed = old.map(\.name).filter { value($0, new) == nil }
        for name in new.map(\.name) + removed {
            let (before, after) = (value(name, old), value(name, new))
            guard before != after else { continue }
            changes.append(
                .init(rule: rule.number, keys: rule.keys, option: name, old: before, new: after)
            )
        }
    }
}
