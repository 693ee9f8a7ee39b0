package import StateEngine

/// The rules of a configuration, found by key.
///
/// Each option comes from the most specific rule that names it: one for the key over one for a prefix over one for a glob, then the one
/// whose literal part is longer.
///
/// What holds for the keys that match the same rules is made once, when the first of them is asked for: each set of rules that match
/// together is a node, reached over the rules in the order in which the walk over a key finds them. That is changed under the lock of the
/// keyspace that asks, or by who made the table and has not given it away: the proof of `@unchecked Sendable`.
package final class RuleTable: KeyRules, @unchecked Sendable {
    /// As they stand in the configuration.
    package let rules: [Rule]
    package let limitsAccess: Bool
    package let ruleOfAll: KeyRule?
    private let byLiteral: LiteralTable<Int>

    private struct Node {
        /// The rules that match, by their places.
        let matching: [Int]
        let rule: KeyRule?
        /// The node where one more matches; few, and mostly one.
        var next: [(rule: Int, node: Int)] = []
    }

    @exclusivity(unchecked) private var nodes = [Node(matching: [], rule: nil)]

    /// Takes the rules of a configuration.
    package init(_ rules: [Rule]) {
        self.rules = rules
        limitsAccess = rules.contains { !$0.access.isEmpty }
        var table = LiteralTable<Int>()
        for (index, rule) in rules.enumerated() { table.insert(index, under: rule.keys.literal) }
        byLiteral = table
        let all = rules.indices.filter { rules[$0].keys == .everything }
        ruleOfAll = all.isEmpty ? nil : KeyRule(KeyRule.Settings(rules, all))
    }

    package func copy() -> any KeyRules { RuleTable(rules) }

    package func rule(for key: Bytes) -> KeyRule? { nodes[node(of: key)].rule }

    /// The rules whose pattern matches `key`, the most specific first.
    package func matching(_ key: Bytes) -> [Int] { nodes[node(of: key)].matching }

    private func node(of key: Bytes) -> Int {
        var node = 0
        byLiteral.forEach(atStartOf: key) { index in
            if rules[index].keys.matches(key) { node = self.node(behind: node, index) }
        }
        return node
    }

    private func node(behind node: Int, _ rule: Int) -> Int {
        for next in nodes[node].next where next.rule == rule { return next.node }
        var matching = nodes[node].matching + [rule]
        matching.sort { rules[$0].isMoreSpecific(than: rules[$1]) }
        nodes[node].next.append((rule, nodes.count))
        nodes.append(Node(matching: matching, rule: KeyRule(KeyRule.Settings(rules, matching))))
        return nodes.count - 1
    }
}

extension KeyRule.Settings {
    /// - Parameters:
    ///   - rules: All those of the configuration.
    ///   - matching: The places of those that match, the most specific first.
    fileprivate init(_ rules: [Rule], _ matching: [Int]) {
        self.init()
        for index in matching {
            let rule = rules[index]
            func setting<Value: Sendable>(
                _ known: KeyRule.Setting<Value>?,
                _ value: Value?
            ) -> KeyRule.Setting<Value>? {
                known ?? value.map { KeyRule.Setting(value: $0, rule: index) }
            }
            backing = setting(backing, rule.backing)
            durability = setting(durability, rule.durability)
            expiry = setting(expiry, rule.expiry)
            schema = setting(schema, rule.schema)
            standard = setting(standard, rule.standard)
            isReadOnly = setting(isReadOnly, rule.isReadOnly)
            isWriteOnce = setting(isWriteOnce, rule.isWriteOnce)
            for (action, principals) in rule.access {
                access[action] = setting(access[action], principals)
            }
            for limit in KeyLimit.allCases {
                limits[limit] = setting(limits[limit], rule.limits[limit])
                softLimits[limit] = setting(softLimits[limit], rule.softLimits[limit])
            }
        }
    }
}

extension Rule {
    /// Whether its options come before those of `other`.
    package func isMoreSpecific(than other: Rule) -> Bool {
        let (mine, theirs) = (keys.kind.rank, other.keys.kind.rank)
        return mine != theirs ? mine > theirs : keys.literal.count > other.keys.literal.count
    }

    /// Whether neither is more specific, and a key can match both.
    package func ties(with other: Rule) -> Bool {
        guard keys.kind == other.keys.kind, keys.literal.count == other.keys.literal.count else {
            return false
        }
        return keys.kind == .glob ? keys.literal == other.keys.literal : keys == other.keys
    }
}

extension Pattern.Kind {
    /// Higher is more specific.
    fileprivate var rank: Int {
        switch self {
        case .key: 2
        case .prefix: 1
        case .glob: 0
        }
    }
}
