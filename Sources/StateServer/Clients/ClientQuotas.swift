import CLinux
import StateEngine

/// Limits of what one uid may have at once, as the rules say them.
///
/// Everything belongs to the loop thread.
final class ClientQuotas {
    private let registry: Registry
    private let gate: ReplyGate
    /// How many watches the limits of rules count.
    var tally = WatchTally()

    init(_ registry: Registry, _ gate: ReplyGate) {
        (self.registry, self.gate) = (registry, gate)
    }

    /// Refuses a connection of a uid that has as many as it may.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the uid, the number and the rule.
    func checkConnections(of uid: UInt32, _ core: KeyspaceCore) throws(StateError) {
        // What is said of everything is said of the empty key.
        guard let rule = core.rules?.rule(for: Bytes(start: nil, count: 0)) else { return }
        try check(.connections, of: rule, uid) { _ in
            registry.memory.connectionCount(of: uid)
        } _: {
            "uid \(uid) has \(counted($0, "connection")) already"
        }
    }

    /// Refuses a watch of a uid that has as many as it may of the keys of a rule.
    ///
    /// A watch counts for the rules that hold for the literal parts of its patterns, once for each.
    ///
    /// - Returns: What the watch counts for.
    /// - Throws: ``StateError/Code/limit``, naming the uid, the number and the rule.
    /// - Complexity: O(*n*) in the patterns, however many watches there are.
    func checkWatches(
        _ patterns: PatternSet,
        of uid: UInt32,
        _ core: KeyspaceCore
    ) throws(StateError) -> Set<WatchTally.Limit> {
        guard let rules = core.rules else { return [] }
        if tally.rules !== rules { countWatches(by: rules) }
        let found = WatchTally.rules(of: patterns, in: rules)
        for rule in found {
            try check(.watches, of: rule, uid) {
                tally.count(of: uid, $0)
            } _: {
                "uid \(uid) has \(counted($0, "watch", "watches")) of keys of the rule already"
            }
        }
        return Set(found.flatMap(WatchTally.limits))
    }

    /// The rules are new: all watches are counted by them.
    private func countWatches(by rules: KeyRules) {
        tally = WatchTally(rules: rules)
        for connection in registry.connections {
            for watcher in connection.watches.all.values {
                let found = WatchTally.rules(of: watcher.watcher.patterns, in: rules)
                watcher.limits = Set(found.flatMap(WatchTally.limits))
                tally.add(watcher.limits, of: connection.peer.uid)
            }
        }
    }

    /// Refuses one more, or only says so.
    ///
    /// - Parameters:
    ///   - limit: What is limited.
    ///   - rule: What holds for the new one.
    ///   - uid: Whose it is.
    ///   - count: How many there are that count for a limit of a rule.
    ///   - sentence: What is said of so many.
    /// - Throws: ``StateError/Code/limit``, naming the number and the rule.
    private func check(
        _ limit: KeyLimit,
        of rule: KeyRule,
        _ uid: UInt32,
        _ count: (WatchTally.Limit) -> Int,
        _ sentence: (Int) -> String
    ) throws(StateError) {
        if let hard = rule.settings.limits[limit] {
            let used = count(WatchTally.Limit(rule: hard.rule, isSoft: false))
            guard used < hard.value else {
                throw StateError(
                    .limit,
                    "\(sentence(used)), of at most \(hard.value) (rule \(hard.rule + 1), limits.\(limit.rawValue))"
                )
            }
        }
        if let soft = rule.settings.softLimits[limit] {
            let used = count(WatchTally.Limit(rule: soft.rule, isSoft: true))
            guard used == soft.value else { return }
            let subject = RepeatedLines.Kind.Subject.softLimit(limit, rule: soft.rule)
            gate.write(.init(subject: subject, uid: uid), .warning) {
                "\(sentence(used)), and begins one more (rule \(soft.rule + 1), softLimits.\(limit.rawValue))"
            }
        }
    }
}

/// How many watches each uid has that count for each rule that limits them.
///
/// Kept, not counted for each new watch: with the patterns of all watches of a uid that took patterns times patterns.
struct WatchTally {
    /// A limit of a rule, by the place of the rule in the configuration.
    struct Limit: Hashable {
        var rule: Int
        var isSoft: Bool
    }

    /// The rules that it was counted by.
    private(set) var rules: KeyRules?
    private var counts: [UInt32: [Limit: Int]] = [:]

    init(rules: KeyRules? = nil) { self.rules = rules }

    func count(of uid: UInt32, _ limit: Limit) -> Int { counts[uid]?[limit] ?? 0 }

    mutating func add(_ limits: Set<Limit>, of uid: UInt32) {
        for limit in limits { counts[uid, default: [:]][limit, default: 0] += 1 }
    }

    /// A watch of these limits has ended.
    mutating func remove(_ limits: Set<Limit>, of uid: UInt32) {
        for limit in limits {
            let count = self.count(of: uid, limit) - 1
            counts[uid]?[limit] = count > 0 ? count : nil
        }
        if counts[uid]?.isEmpty ?? false { counts[uid] = nil }
    }

    /// What holds for the literal parts of the patterns and limits watches, each once.
    static func rules(of patterns: PatternSet, in rules: KeyRules) -> [KeyRule] {
        var found: [KeyRule] = []
        var seen: Set<ObjectIdentifier> = []
        for pattern in patterns.patterns {
            guard let rule = pattern.literal.withUnsafeBytes({ rules.rule(for: $0) }),
                !limits(of: rule).isEmpty, seen.insert(ObjectIdentifier(rule)).inserted
            else { continue }
            found.append(rule)
        }
        return found
    }

    static func limits(of rule: KeyRule) -> [Limit] {
        let hard = rule.settings.limits[.watches].map { Limit(rule: $0.rule, isSoft: false) }
        let soft = rule.settings.softLimits[.watches].map { Limit(rule: $0.rule, isSoft: true) }
        return [hard, soft].compactMap { $0 }
    }
}

/// `1 watch`, `2 watches`.
private func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(count == 1 ? one : many ?? one + "s")"
}
