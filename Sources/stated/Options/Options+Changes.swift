import StateEngine
import StateRules
import StateServer

/// What is another in a configuration that takes the place of an older one.
extension Options {
    /// The options of the daemon as a configuration names them, each as it is written.
    private var written: [(name: String, value: String?, isLive: Bool)] {
        func bytes(_ count: Int) -> String { Quantity.text(byteCount: Int64(count)) }
        return [
            ("socket.path", socket, false),
            ("socket.mode", "0" + String(socketMode, radix: 8), false),
            ("socket.group", socketGroup.map { String($0) }, false),
            ("data", dataDirectory, false),
            ("limits.valueBytes", bytes(limits.valueByteCount), true),
            ("limits.clients", String(clientCount), true),
            ("limits.watches", String(watchCount), true),
            ("limits.steps", String(stepCount), true),
            ("limits.globs", String(globCount), true),
            ("limits.outputBytes", bytes(outputByteCount), true),
            ("limits.inputBytes", bytes(inputByteCount), true),
            ("limits.queueBytes", bytes(limits.queueByteCount), true),
            ("limits.transactionBytes", bytes(limits.transactionByteCount), true),
            ("limits.replyBytes", bytes(replyByteCount), true),
            ("limits.files", String(limits.fileCount), true),
            ("limits.memoryBytes", bytes(memoryByteCount), true),
            ("limits.frameTimeout", Quantity.text(.milliseconds(frameMilliseconds)), true),
            ("limits.rest", Quantity.text(.milliseconds(restMilliseconds)), true),
            ("limits.checkEvery", Quantity.text(.milliseconds(checkMilliseconds)), true),
            ("limits.reserveBytes", bytes(reserveByteCount), true),
            ("history.age", Quantity.text(history.age), true),
            ("history.changes", String(history.changeCount), true),
            ("history.bytes", Quantity.text(byteCount: history.byteCount), true),
        ]
    }

    /// What is another in `next`, and whether it can hold while clients are served; keys live where `locations` of the start say.
    func changes(to next: Options, _ locations: [RuleDescription]) -> ReloadReport {
        var report = ReloadReport(changed: [], needsRestart: [])
        for (old, new) in zip(written, next.written) where old.value != new.value {
            let change = ReloadReport.Change(option: old.name, old: old.value, new: new.value)
            old.isLive ? report.changed.append(change) : report.needsRestart.append(change)
        }
        report.changed += RuleChanges(rules.policies, next.rules.policies).changes
        report.needsRestart += RuleChanges(locations, next.rules.locations).changes
        return report
    }

    /// These options, with what another configuration may only say at a start.
    func keepingPlaces(of running: Options) -> Options {
        var options = self
        options.socket = running.socket
        options.socketMode = running.socketMode
        options.socketGroup = running.socketGroup
        options.dataDirectory = running.dataDirectory
        return options
    }

    /// Has a server keep to these limits.
    func apply(to server: inout ServerOptions, _ log: Log) {
        server.limits = limits
        server.watchCount = watchCount
        server.stepCount = stepCount
        server.globCount = globCount
        server.outputByteCount = outputByteCount
        server.inputByteCount = inputByteCount
        server.replyByteCount = replyByteCount
        server.memoryByteCount = MachineMemory.bound(memoryByteCount, log: log)
        server.frameMilliseconds = Int64(frameMilliseconds)
        server.restMilliseconds = Int64(restMilliseconds)
        server.checkMilliseconds = Int64(checkMilliseconds)
        server.clientCount = DescriptorLimit.raise(forClients: clientCount, log: log)
    }
}

extension RuleTable {
    /// What the rules say of where keys live.
    var locations: [RuleDescription] { descriptions { KeyBacking.options.contains($0) } }

    /// What they say beside it.
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

/// The options that rules name otherwise than the rules before them did.
///
/// A rule is the same one where its pattern is, whatever its
/// number; of several with one pattern each is compared with the one in its place among them.
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
        let names =
            new.map(\.name)
            + old.map(\.name).filter { name in
                !new.contains { $0.name == name }
            }
        for name in names {
            let (before, after) = (
                old.first { $0.name == name }?.value, new.first { $0.name == name }?.value
            )
            guard before != after else { continue }
            changes.append(
                ReloadReport.Change(
                    rule: rule.number,
                    keys: rule.keys,
                    option: name,
                    old: before,
                    new: after
                )
            )
        }
    }
}
