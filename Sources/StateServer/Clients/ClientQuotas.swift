import CLinux
import StateEngine

/// Limits from the rules on the connections and watches of one uid.
///
/// Used only by the loop thread.
final class ClientQuotas {
    private let registry: Registry
    private let gate: ReplyGate
    /// The number of watches that each limit counts.
    var tally = WatchTally()

    init(_ registry: Registry, _ gate: ReplyGate) {
        (self.registry, self.gate) = (registry, gate)
    }

    /// Refuses a connection if its uid has reached the limit.
    ///
    /// - Throws: ``StateError/Code/limit``, naming the uid, the number and the rule.
    func checkConnections(of uid: UInt32, _ core: KeyspaceCore) throws(StateError) {
        // The rule for the empty key is the rule for everything.
        guard let rule = core.rules?.rule(for: Bytes(start: nil, count: 0)) else { return }
        try check(.connections, of: rule, uid) { _ in
            registry.memory.connectionCount(of: uid)
        } _: {
            "uid \(uid) already has \(counted($0, "connection"))"
        }
    }

    /// Refuses a watch if its uid has reached the limit for the keys of a rule.
    ///
    /// A watch counts once for each rule that applies to the literal part of one of its patterns, or
    /// to keys below it.
    ///
    /// - Returns: The limits for which the watch counts.
    /// - Throws: ``StateError/Code/limit``, naming the uid, the number and the rule.
    /// - Complexity: O(*n* log *n*) in the patterns, and O(*m*) in the rules that limit watches for
    ///   each glob among them; however many watches there are.
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
                "uid \(uid) already has \(counted($0, "watch", "watches")) for the rule"
            }
        }
        return Set(found.flatMap(WatchTally.limits))
    }

    /// The limits for which a watch counts that is not refused.
    func limits(of patterns: PatternSet, _ core: KeyspaceCore) -> Set<WatchTally.Limit> {
        guard let rules = core.rules else { return [] }
        if tally.rules !== rules { countWatches(by: rules) }
        return Set(WatchTally.rules(of: patterns, in: rules).flatMap(WatchTally.limits))
    }

    /// Counts all watches again, by new rules.
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

    /// Refuses one more, or only logs it.
    ///
    /// - Parameters:
    ///   - limit: The kind of limit.
    ///   - rule: The rule for the new connection or watch.
    ///   - uid: Its user.
    ///   - count: The current number for a limit of a rule.
    ///   - sentence: The message for that number.
    /// - Throws: ``StateError/Code/limit``, naming the number and the rule.
    private func check(
        _ limit: KeyLimit,
        of rule: KeyRule,
        _ uid: UInt32,
        _ count: (WatchTally.Limit) -> Int,
        _ sentence: (Int) -> String
    ) throws(StateError) {
        if let hard = rule.settings.limits[limit] {
            let used = count(WatchTally.Limit(rule: hard.rule.index, isSoft: false))
            guard used < hard.value else {
                throw StateError(
                    .limit,
                    "\(sentence(used)), the limit is \(hard.value) (\(hard.rule), "
                        + "limits.\(limit.rawValue))"
                )
            }
        }
        if let soft = rule.settings.softLimits[limit] {
            let used = count(WatchTally.Limit(rule: soft.rule.index, isSoft: true))
            guard used == soft.value else { return }
            let subject = RepeatedLines.Kind.Subject.softLimit(limit, rule: soft.rule.index)
            gate.write(.init(subject: subject, uid: uid), .warning) {
                let text =
                    "\(sentence(used)) and opens one more (\(soft.rule), "
                    + "softLimits.\(limit.rawValue))"
                return (text, [.uid(uid), .rule(soft.rule.index)])
            }
        }
    }
}

/// The number of watches of each uid for each rule that limits them.
///
/// It is kept up to date: counting the patterns of all watches of a uid for each new watch would
/// take quadratic time.
struct WatchTally {
    /// A limit of a rule, by the index of the rule in the configuration.
    struct Limit: Hashable {
        var rule: Int
        var isSoft: Bool
    }

    /// The rules by which it was counted.
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

    /// The rules that apply to the patterns and limit watches, each once.
    static func rules(of patterns: PatternSet, in rules: KeyRules) -> [KeyRule] {
        var found: [KeyRule] = []
        var seen: Set<ObjectIdentifier> = []
        func add(ruleOf key: [UInt8]) {
            guard let rule = key.withUnsafeBytes({ rules.rule(for: $0) }),
                !limits(of: rule).isEmpty, seen.insert(ObjectIdentifier(rule)).inserted
            else { return }
            found.append(rule)
        }
        for pattern in patterns.patterns { add(ruleOf: pattern.literal) }
        guard !rules.watchLimits.isEmpty else { return found }
        for limited in limited(below: patterns, by: rules.watchLimits) {
            if let key = limited.examples.first { add(ruleOf: key) }
        }
        return found
    }

    /// Those of `limited` that begin with the literal part of a wider pattern.
    private static func limited(below patterns: PatternSet, by limited: [Pattern]) -> [Pattern] {
        let wide = patterns.patterns.filter { $0.kind != .key }
            .sorted { $0.literal.lexicographicallyPrecedes($1.literal) }
        var found: [Pattern] = []
        var covering: Pattern?
        for pattern in wide {
            // What a wider prefix covers was found with it.
            if let covering, pattern.literal.starts(with: covering.literal) { continue }
            if pattern.kind == .prefix { covering = pattern }
            var (low, high) = (0, limited.count)
            while low < high {
                let middle = (low + high) / 2
                let isBefore = limited[middle].literal.lexicographicallyPrecedes(pattern.literal)
                if isBefore { low = middle + 1 } else { high = middle }
            }
            found += limited[low...].prefix { $0.literal.starts(with: pattern.literal) }
                .filter { pattern.meets($0) }
        }
        return found
    }

    static func limits(of rule: KeyRule) -> [Limit] {
        let hard = rule.settings.limits[.watches].map { Limit(rule: $0.rule.index, isSoft: false) }
        let soft = rule.settings.softLimits[.watches].map {
            Limit(rule: $0.rule.index, isSoft: true)
        }
        return [hard, soft].compactMap { $0 }
    }
}

/// `1 watch`, `2 watches`.
private func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(count == 1 ? one : many ?? one + "s")"
}
