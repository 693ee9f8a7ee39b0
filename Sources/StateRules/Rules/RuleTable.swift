package import StateEngine

/// The rules of a configuration.
///
/// Each option comes from the most specific rule that sets it: a rule for the key before one for a
/// prefix before one for a glob, then the rule with the longer literal part.
package struct RuleTable: Sendable {
    /// In the order of the configuration.
    package let rules: [Rule]
    /// Those that do not allow everybody something, for the checks of files.
    let restricting: [FileUse: [Rule]]
    /// The same, to look up by key.
    package let byKey: KeyRules

    /// The defaults in files, for the checks.
    let defaults: ConfiguredDefaults

    /// Takes the rules of a configuration, and its files of defaults.
    package init(_ rules: [Rule], _ defaults: ConfiguredDefaults = ConfiguredDefaults()) {
        self.rules = rules
        self.defaults = defaults
        restricting = Dictionary(
            uniqueKeysWithValues: FileUse.allCases.map { use in
                (use, rules.filter(use.isRestricted))
            }
        )
        let patterns = RulePatterns(rules)
        let countsUsage = rules.contains { rule in
            [KeyLimit.keys, .bytes].contains {
                rule.limits[$0] != nil || rule.softLimits[$0] != nil
            }
        }
        let usages = rules.map { _ in KeyUsage() }
        let rates = rules.map { _ in WriteRate() }
        byKey = KeyRules(
            patterns.all,
            owners: patterns.owners,
            memoryPatterns: rules.filter { $0.backing == .memory }.flatMap(\.keys),
            retentions: rules.compactMap(\.history),
            deferredPatterns: rules.filter(\.isDeferring).flatMap(\.keys),
            usages: countsUsage ? usages : [],
            texts: WrittenRules(rules: rules, patterns: patterns)
        ) { matching in
            let settings = KeyRule.Settings(rules, patterns.rules(of: matching))
            return KeyRule(settings, quotas: RuleTable.quotas(settings, usages, rates))
        }
        byKey.lifetimes = Set(rules.compactMap(\.lifetime))
        byKey.standards = defaults.standards(besides: rules)
        byKey.access.text = RuleTable.accessText(rules)
        byKey.access.administrators = rules.flatMap { $0.access[.admin] ?? [] }
        byKey.access.readers = rules.compactMap { $0.access[.read] }
        byKey.access.allowed = patterns.sorted(Array(patterns.all.indices)).flatMap { place in
            [KeyAction.read, .watch].compactMap { action in
                rules[patterns.owners[place]].access[action].map {
                    AllowedPattern(patterns.all[place], action, $0)
                }
            }
        }
        byKey.watchLimits = rules.filter {
            $0.limits[.watches] != nil || $0.softLimits[.watches] != nil
        }
        .flatMap(\.keys).sorted { $0.literal.lexicographicallyPrecedes($1.literal) }
        byKey.audits = rules.filter { $0.audit ?? .nothing != .nothing }.flatMap { rule in
            rule.keys.map { AuditedPattern($0, rule.place, includesReads: rule.audit == .reads) }
        }
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
                    usage: usages[setting.rule.index],
                    rate: rates[setting.rule.index]
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
                known ?? value.map { KeyRule.Setting(value: $0, rule: rule.place) }
            }
            backing = setting(backing, rule.backing)
            durability = setting(durability, rule.durability)
            // It belongs to its durability, which a more specific rule may have set.
            let isOfCluster = durability == nil && rule.backing == .cluster
            if durability?.rule == rule.place || isOfCluster {
                commitInterval = setting(commitInterval, rule.commitInterval)
            }
            expiry = setting(expiry, rule.expiry)
            lifetime = setting(lifetime, rule.lifetime)
            history = setting(history, rule.history)
            schema = setting(schema, rule.schema)
            standard = setting(standard, rule.standard)
            isReadOnly = setting(isReadOnly, rule.isReadOnly)
            isWriteOnce = setting(isWriteOnce, rule.isWriteOnce)
            audit = setting(audit, rule.audit)
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

/// The patterns of all rules.
struct RulePatterns: Sendable {
    let all: [Pattern]
    /// The index of the rule of each.
    let owners: [Int]

    init(_ rules: [Rule]) {
        all = rules.flatMap(\.keys)
        owners = rules.indices.flatMap { index in rules[index].keys.map { _ in index } }
    }

    /// The most specific first; of equal ones, the first in the configuration.
    func sorted(_ matching: [Int]) -> [Int] {
        matching.sorted { left, right in
            if all[left].isMoreSpecific(than: all[right]) { return true }
            return !all[right].isMoreSpecific(than: all[left]) && left < right
        }
    }

    /// The rules of matching patterns in that order, each once.
    func rules(of matching: [Int]) -> [Int] {
        guard matching.count > 1 else { return matching.map { owners[$0] } }
        var rules: [Int] = []
        for place in sorted(matching) where !rules.contains(owners[place]) {
            rules.append(owners[place])
        }
        return rules
    }
}
