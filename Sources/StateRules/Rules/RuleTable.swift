package import StateEngine

/// The rules of a configuration.
///
/// Each option comes from the most specific rule that sets it: a rule for the key before one for a
/// prefix before one for a glob, then the rule with the longer literal part.
package struct RuleTable: Sendable {
    /// In the order of the configuration.
    package let rules: [Rule]
    /// The same, to look up by key.
    package let byKey: KeyRules

    /// Takes the rules of a configuration.
    package init(_ rules: [Rule]) {
        self.rules = rules
        let countsUsage = rules.contains { rule in
            [KeyLimit.keys, .bytes].contains {
                rule.limits[$0] != nil || rule.softLimits[$0] != nil
            }
        }
        let usages = rules.map { _ in KeyUsage() }
        let rates = rules.map { _ in WriteRate() }
        byKey = KeyRules(
            rules.map(\.keys),
            accessText: RuleTable.accessText(rules),
            administrators: rules.flatMap { $0.access[.admin] ?? [] },
            readers: rules.compactMap { $0.access[.read] },
            memoryPatterns: rules.filter { $0.backing == .memory }.map(\.keys),
            retentions: rules.compactMap(\.history),
            deferredPatterns: rules.filter { $0.durability == .interval }.map(\.keys),
            usages: countsUsage ? usages : [],
            texts: WrittenRules(rules: rules)
        ) { matching in
            let settings = KeyRule.Settings(rules, RuleTable.sorted(matching, of: rules))
            return KeyRule(settings, quotas: RuleTable.quotas(settings, usages, rates))
        }
        byKey.lifetimes = Set(rules.compactMap(\.lifetime))
    }

    /// The most specific first.
    static func sorted(_ matching: [Int], of rules: [Rule]) -> [Int] {
        matching.sorted { rules[$0].keys.isMoreSpecific(than: rules[$1].keys) }
    }

    private static func quotas(
        _ settings: KeyRule.Settings,
        _ usages: [KeyUsage],
        _ rates: [WriteRate]
    ) -> [Quota] {
        [(settings.limits, false), (settings.softLimits, true)].flatMap { limits, isSoft in
            limits.map { limit, setting in
                Quota(
                    limit,
                    setting.value,
                    rule: setting.rule,
                    isSoft: isSoft,
                    usage: usages[setting.rule],
                    rate: rates[setting.rule]
                )
            }
        }
    }
}

extension KeyRule.Settings {
    /// - Parameters:
    ///   - rules: All rules of the configuration.
    ///   - matching: The indices of those that match, the most specific first.
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
            // It belongs to its durability, which a more specific rule may have set.
            if durability?.rule == index {
                commitInterval = setting(commitInterval, rule.commitInterval)
            }
            expiry = setting(expiry, rule.expiry)
            lifetime = setting(lifetime, rule.lifetime)
            history = setting(history, rule.history)
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
    /// Whether neither rule is more specific, and a key can match both.
    func ties(with other: Rule) -> Bool {
        guard keys.kind == other.keys.kind, keys.literal.count == other.keys.literal.count else {
            return false
        }
        return keys.kind == .glob ? keys.literal == other.keys.literal : keys == other.keys
    }
}
